//! `roost wait`: blocks until children have ended, and says how.

use clap::Args;
use roost::proto::message::result::{Told, Wait, WaitReply};
use roost::proto::rpc::ErrorKind;

use crate::candidates;
use crate::commands::progress::Line;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line, note};
use crate::setup::Setup;
use crate::values;

/// Wait for children to end; one line per outcome, exit 0 only when all completed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost wait\n  roost wait build test --timeout 10m\n  roost wait --any")]
pub struct WaitArgs {
    /// Which children [default: all whose end was not told yet]
    #[arg(value_name = "NAME", add = candidates::workers())]
    names: Vec<String>,
    /// All of them, as when no name is given
    #[arg(long, conflicts_with_all = ["names", "any"])]
    all: bool,
    /// Until the first of them has ended
    #[arg(long)]
    any: bool,
    /// Give up after this long, with exit code 124
    #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
    timeout: Option<u64>,
    /// No progress on the terminal
    #[arg(short, long)]
    quiet: bool,
}

impl WaitArgs {
    /// Waits and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        // Without names the reply is news that is told once: it counts as told when our reader has it, not before.
        let tell_later = self.names.is_empty();
        let wait = Wait { request_id: roost::request_id()?, names: self.names, any: self.any, timeout_ms: self.timeout, tell_later };
        let mut connection = setup.in_tree()?;
        let line = Line::new(!out.json && !self.quiet);
        // What happens in the tree is its root's to see.
        if let Some(identity) = connection.config().identity.as_ref().filter(|identity| identity.worker.is_none()) {
            line.follow(connection.config().clone(), identity.tree);
        }
        let reply = connection.wait(&wait);
        line.clear();
        let reply = reply?;
        if out.json {
            out.json(&reply)?;
        } else {
            for end in &reply.ended {
                out.line(&format!("{} {}", escape_line(&end.name), escape_line(&end.outcome.to_string())))?;
            }
        }
        out.flush()?;
        if tell_later && !reply.ended.is_empty() {
            let told = connection.told(&Told { executions: reply.ended.iter().map(|end| end.execution).collect() });
            // A daemon that does not know this has counted them as told with its answer.
            told.or_else(|error| if error.refusal() == Some(ErrorKind::UnknownMethod) { Ok(()) } else { Err(error) })?;
        }
        if reply.timed_out {
            note(&format!("roost: the time is over; still pending: {}", escape_line(&reply.pending.join(" "))));
        }
        Ok(exit(&reply))
    }
}

fn exit(reply: &WaitReply) -> Exit {
    if reply.timed_out {
        Exit::TimedOut
    } else if reply.ended.iter().all(|end| end.outcome.is_success()) {
        Exit::Ok
    } else {
        Exit::NotCompleted
    }
}
