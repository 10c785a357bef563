//! What a scenario expects: counts, states, and what somebody was told or refused with.

use roost_core::command::{Caller, Claim, Open, Role};
use roost_core::effect::{End, Reply};
use roost_core::event::Sent;
use roost_core::state::outbox::Item;
use roost_proto::id::{Epoch, TreeId};

use super::super::Checked;
use super::super::kernel::identity;
use super::super::script::token_of;
use super::super::world::Answer;
use super::Table;
use super::words::state_of;

impl Table {
    /// What a process of this worker says in its hello, or an impostor does.
    pub(super) fn claim(&self, name: &str, token: Option<&str>, epoch: Option<&str>) -> Checked<Claim> {
        let right = if name == "root" { token_of(100) } else { self.worker(name)?.token };
        let token = if token == Some("wrong") { token_of(999) } else { right };
        if name == "root" {
            return Ok(Claim { tree: self.tree, worker: None, token, epoch: None, lineage: vec![identity(1)], role: None });
        }
        let worker = self.worker(name)?;
        let epoch = epoch.map_or(Ok(worker.epoch.0), str::parse).map_err(|error| error.to_string())?;
        let role = worker.speaks().then_some(Role::Voice { can_park: !name.starts_with("stiff"), steers: !name.starts_with("deaf") });
        let process = worker.process.unwrap_or_else(|| identity(0));
        Ok(Claim { tree: self.tree, worker: Some(worker.id), token, epoch: Some(Epoch(epoch)), lineage: vec![process], role })
    }

    /// A tree like the one of the scenario.
    pub(super) fn open(&self, tree: TreeId, request_id: String, key: Option<&str>) -> Checked<Open> {
        let like = self.world.state().trees.get(&self.tree).ok_or("the tree is gone")?;
        let settings = like.settings.clone();
        Ok(Open { tree, token: token_of(tree.0), request_id, key: key.map(str::to_owned), ephemeral: false, settings })
    }

    /// `live=1`, `queued=2` of the tree, `a=running` or `a=completed` of a worker, `a-budget=3`.
    pub(super) fn expect(&self, word: &str) -> Checked {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("not an expectation: {word}"))?;
        let tree = self.world.state().trees.get(&self.tree).ok_or("the tree is gone")?;
        let counts = tree.counts;
        let got = match key {
            "live" => counts.live.to_string(),
            "queued" => tree.queued().to_string(),
            "parked" => counts.parked.to_string(),
            "lent" => counts.lent.to_string(),
            "parking" => counts.parking.to_string(),
            "closed" => if tree.closed_at.is_some() { "yes" } else { "no" }.into(),
            "owed" => tree.outbox.items_to(u64::MAX).count().to_string(),
            "budget" => tree.ledger.remaining().to_string(),
            "next" => {
                tree.head().and_then(|head| self.world.state().workers.get(&head)).map_or("none".into(), |head| head.name.to_string())
            }
            "root-back" => tree.outbox.items_to(u64::MAX).filter(|(_, item)| matches!(item, Item::Undelivered { .. })).count().to_string(),
            name => match name.rsplit_once('-') {
                Some((name, "budget")) => self.worker(name)?.ledger.remaining().to_string(),
                Some((name, "said")) => {
                    let said = self.worker(name)?.speech.as_ref().is_some_and(|speech| speech.said.is_some());
                    if said { "yes" } else { "no" }.into()
                }
                Some((name, "epoch")) => self.worker(name)?.epoch.to_string(),
                Some((name, "owed")) => self.worker(name)?.outbox.items_to(u64::MAX).count().to_string(),
                Some(_) | None => state_of(self.worker(name)?),
            },
        };
        if got == value { Ok(()) } else { Err(format!("{key} is {got}")) }
    }

    fn answer(&mut self, name: &str) -> Checked<Answer> {
        let call = self.newest.get(name).copied().ok_or_else(|| format!("{name} has asked nothing"))?;
        self.world.answers.remove(&call).ok_or_else(|| format!("{name} has no answer"))
    }

    /// The names in the newest answer of this caller.
    pub(super) fn told(&mut self, name: &str, expected: &[String]) -> Checked {
        let Answer::Reply(reply) = self.answer(name)? else { return Err(format!("{name} was refused")) };
        let ends = |ends: Vec<End>| ends.into_iter().map(|end| end.name).collect();
        let got: Vec<String> = match *reply {
            // Who had not ended when the time was over stands behind a minus.
            Reply::Ends { ends: told, pending, timed_out } if timed_out => {
                told.into_iter().map(|end| end.name).chain(pending.into_iter().map(|name| format!("-{name}"))).collect()
            }
            Reply::Ends { ends: told, .. } => ends(told),
            Reply::Welcome { caller: Caller::Worker { epoch, .. }, .. } => vec![format!("epoch-{epoch}")],
            Reply::Opened { tree, created, .. } => vec![if tree == self.tree { "same" } else { "other" }.into(), created.to_string()],
            Reply::StillActive { view, .. } => vec![format!("-{}", view.name)],
            Reply::Drained { stopped } => vec![stopped.to_string()],
            Reply::Receipt { tasks, ends: told, .. } if told.is_empty() => tasks.into_iter().map(|task| task.name).collect(),
            Reply::Receipt { ends: told, .. } => ends(told),
            Reply::Result(end) => vec![end.name],
            Reply::Stopped(names) => {
                names.into_iter().map(|(name, stopped)| if stopped { name } else { format!("{name}(settled)") }).collect()
            }
            Reply::Interrupted { stopped, .. } | Reply::Closed { stopped } => vec![stopped.to_string()],
            Reply::Settled(next) => vec![format!("{next:?}").to_lowercase()],
            Reply::ParkReady(parked) => vec![if parked { "parked" } else { "goes-on" }.into()],
            Reply::Acked { accepted, gone } => {
                accepted.iter().map(u64::to_string).chain(gone.iter().map(|seq| format!("-{seq}"))).collect()
            }
            Reply::Sent { sent, .. } => vec![how(sent).into()],
            other @ (Reply::Welcome { .. }
            | Reply::Status { .. }
            | Reply::Counts(_)
            | Reply::Cap(_)
            | Reply::Paused(_)
            | Reply::Parked
            | Reply::Done
            | Reply::Inbox { .. }
            | Reply::Usage(_)
            | Reply::Swept(_)) => return Err(format!("the answer is {other:?}")),
        };
        if got == expected { Ok(()) } else { Err(format!("{name} was told {got:?}")) }
    }

    pub(super) fn refused(&mut self, name: &str, expected: &str) -> Checked {
        match self.answer(name)? {
            Answer::Refused(rejection) => {
                let kind = format!("{:?}", rejection.kind()).to_lowercase();
                if kind == expected.replace('_', "") { Ok(()) } else { Err(format!("it was refused with {kind}: {rejection}")) }
            }
            Answer::Reply(reply) => Err(format!("it was answered: {reply:?}")),
        }
    }
}

fn how(sent: Sent) -> &'static str {
    match sent {
        Sent::Steering(_) => "steering",
        Sent::AfterEnd(_) => "after-end",
        Sent::Resumes(_) => "resumes",
        Sent::ToLead => "to-lead",
    }
}
