//! `roost inbox`: what the caller is owed; with `--ack` it is taken in once it is printed.

use clap::Args;
use roost::proto::message::deliver::{Ack, InboxReply, Item, ItemKind};
use roost::{Lead, LeadEvent, Seen};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape, escape_line, note};
use crate::setup::Setup;

/// Show what is owed to you: ends of children, their words, messages that were never read
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost inbox\n  roost inbox --ack\n  roost inbox --follow --ack --json\n\n\
    Looking takes nothing in. --ack and --follow take the lease of the tree: a session that had it is not told anything any more.")]
pub struct InboxArgs {
    /// Take in what was printed: it is not owed any more (the root only)
    #[arg(long)]
    ack: bool,
    /// Go on with what comes (the root only)
    #[arg(short, long)]
    follow: bool,
}

impl InboxArgs {
    /// Looks, prints, and takes in.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        if !self.ack && !self.follow {
            let reply = setup.in_tree()?.inbox()?;
            print(&reply, out)?;
            return Ok(Exit::Ok);
        }
        let mut lead = lead(setup)?;
        if self.follow {
            lead.connection().start_no_more();
            return self.follow(&mut lead, out);
        }
        loop {
            let reply = lead.connection().inbox()?;
            print(&reply, out)?;
            if reply.items.is_empty() {
                return Ok(Exit::Ok);
            }
            // Only what our reader has is taken in.
            lead.connection().ack(&Ack { items: reply.items.iter().map(|item| item.seq).collect(), request_id: None })?;
            if reply.more == 0 {
                return Ok(Exit::Ok);
            }
        }
    }

    fn follow(&self, lead: &mut Lead, out: &mut Out) -> Result<Exit, Failure> {
        loop {
            match lead.next(None)? {
                Some(LeadEvent::Items(items)) => {
                    print(&InboxReply { items: items.items.clone(), more: 0 }, out)?;
                    if self.ack {
                        lead.accept(items.items)?;
                    }
                }
                Some(LeadEvent::LeaseLost) => {
                    note("roost: another connection has taken the lease of this tree");
                    return Ok(Exit::NotCompleted);
                }
                None => {}
            }
        }
    }
}

fn lead(setup: &Setup) -> Result<Lead, Failure> {
    let config = setup.config()?;
    if let Some(tree) = setup.tree {
        return Ok(Lead::attach(config, tree, Seen::default())?);
    }
    match &config.identity {
        None => Err(Failure::no_tree()),
        Some(identity) if identity.worker.is_some() => Err(Failure::Usage {
            kind: "not_root",
            message: "what a worker is owed is taken in by its own process, and ROOST_WORKER is set".into(),
            hint: Some("`roost inbox` without --ack and --follow shows it".into()),
        }),
        Some(_) => Ok(Lead::connect(config, Seen::default())?),
    }
}

fn print(reply: &InboxReply, out: &mut Out) -> Result<(), Failure> {
    if out.json {
        out.json(reply)?;
    } else {
        for item in &reply.items {
            let (head, text) = shown(item);
            out.line(&format!("{} {}", item.seq, escape_line(&head)))?;
            for line in escape(text).lines() {
                out.line(&format!("  {line}"))?;
            }
        }
        if reply.more > 0 {
            out.line(&format!("and {} more", reply.more))?;
        }
    }
    out.flush()
}

/// The head line of an item, and its text.
fn shown(item: &Item) -> (String, &str) {
    match &item.what {
        ItemKind::Task { text } => ("task".into(), text),
        ItemKind::Completion { result } => {
            let end = &result.end;
            let partial = if result.partial { " (what it had written so far)" } else { "" };
            (format!("completion of {} {}: {}{partial}", end.name, end.execution, end.outcome), &result.answer)
        }
        ItemKind::LeadMessage { message, text } => (format!("message {message} from the lead"), text),
        ItemKind::ChildMessage { message, from, text, .. } => (format!("message {message} from {from}"), text),
        ItemKind::Notice { from, execution, text, .. } => (format!("{from} {execution}: Idle, waiting for children."), text),
        ItemKind::Undelivered { message, to, reason, text } => (format!("message {message} to {to} was never read: {reason}"), text),
    }
}
