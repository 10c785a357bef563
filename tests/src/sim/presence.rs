//! Roots that leave and come back, trees that live by them, and a daemon that is told to leave.

use roost_core::command::{CallId, Caller, Claim, Command, Speak};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Event, Owner, Record};
use roost_proto::id::TreeId;
use roost_proto::limits::REATTACH_MS;

use super::Checked;
use super::kernel::identity;
use super::script::{Ask, Asking, Call, Who, usage};
use super::world::World;

/// Where the root of a tree is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Presence {
    /// Its tree is closed when it is gone and its work done.
    pub(crate) ephemeral: bool,
    /// It has left and will come back.
    pub(crate) deserted: bool,
    /// Since when the broker knows of no connection of it.
    pub(crate) absent: Option<u64>,
}

/// A window of a root that lost its lease to another one, and is still open.
#[derive(Debug, Clone)]
pub(crate) struct Ghost {
    tree: TreeId,
    lease: u64,
    /// What it has asked.
    calls: Vec<u64>,
}

impl World {
    /// The root of a tree connects, or its last connection is gone.
    pub(crate) fn presence(&mut self, index: usize, is_there: bool) -> Checked {
        let now = self.now;
        self.presences[index].absent = (!is_there).then_some(now);
        match self.roots[index].tree {
            Some(tree) => self.step(Command::RootPresence { tree, connections: u32::from(is_there) }),
            None => Ok(()),
        }
    }

    /// A root leaves.
    pub(crate) fn desert(&mut self, index: usize) -> Checked {
        self.note("roots leave");
        self.presences[index].deserted = true;
        self.presence(index, false)
    }

    /// Another window of the root's takes its lease. It uses something, takes nothing in and is gone, or the root goes on in it from here
    /// on, and what is gone later is the one before.
    pub(crate) fn window(&mut self, index: usize) -> Checked {
        let who = Who::Root(index);
        if self.roots[index].lease.is_none() || self.roots[index].op().is_none() {
            return Ok(());
        }
        let Some(claim) = self.claim(who) else { return Ok(()) };
        if self.plan.wide && self.steps.is_multiple_of(2) {
            let (tree, life) = (claim.tree, self.life);
            let Some(lease) = self.roots[index].lease.filter(|lease| *lease > 0 && self.roots[index].life == life) else { return Ok(()) };
            self.note("roots move to another window");
            let calls = self.detach(who);
            // Nothing of what the old one is still told reaches the new one.
            self.roots[index].lease = Some(0);
            if let Some(call) = self.roots[index].again.as_mut() {
                call.id = 0;
            }
            self.ghosts.push(Ghost { tree, lease, calls });
            return Ok(());
        }
        self.note("second windows");
        self.calls += 1;
        let tree = claim.tree;
        self.step(Command::Hello { call: CallId(self.calls), claim: Some(Claim { lineage: vec![identity(9_999)], ..claim }) })?;
        self.calls += 1;
        let lease = self.state().trees.get(&tree).map(|tree| tree.lease);
        let speak = Box::new(Speak::Report { activity: None, usage: Some(usage(1, 7)), says: false });
        self.step(Command::Speak { call: CallId(self.calls), caller: Caller::Root(tree), lease, speak })
    }

    /// A window that has lost its lease acknowledges something, or is closed.
    pub(crate) fn ghost(&mut self, number: usize, leaves: bool) -> Checked {
        let Some(ghost) = self.ghosts.get(number).cloned() else { return Ok(()) };
        let Ghost { tree, lease, calls } = ghost;
        if leaves {
            self.ghosts.remove(number);
            self.lost.extend(calls.into_iter().map(CallId));
            return self.step(Command::LeaseGone { tree, owner: Owner::Root, lease });
        }
        // Until somebody else has it, it holds its lease.
        if self.state().trees.get(&tree).is_none_or(|tree| tree.lease == lease) {
            return Ok(());
        }
        self.step(Command::Tick)?;
        self.calls += 1;
        let (call, speak) = (CallId(self.calls), Box::new(Speak::Ack { items: (1..50).collect(), request_id: None }));
        let command = Command::Speak { call, caller: Caller::Root(tree), lease: Some(lease), speak };
        let outcome = self.broker.step(self.moment(), command).map_err(|error| format!("the broker stops: {error}"))?;
        let refused = |effect: &Effect| matches!(effect, Effect::Refuse { call: of, .. } if *of == call);
        if outcome.records.is_empty() && outcome.effects.len() == 1 && outcome.effects.iter().all(refused) {
            return Ok(());
        }
        Err(format!("an old window acknowledges with lease {lease}: {:?} {:?} (I12)", outcome.records, outcome.effects))
    }

    /// The connection of a client is lost; it connects again and asks again.
    pub(crate) fn cut(&mut self, who: Who) -> Checked {
        let life = self.life;
        let owner = self.owner(who);
        let Some(script) = self.script(who).filter(|script| script.life == life && script.caller.is_some()) else { return Ok(()) };
        let (tree, lease) = (script.tree, script.lease);
        self.note("connections are lost");
        let calls = self.detach(who);
        self.lost.extend(calls.into_iter().map(CallId));
        match (tree, lease) {
            (Some(tree), Some(lease)) => self.step(Command::LeaseGone { tree, owner, lease }),
            _ => Ok(()),
        }
    }

    /// A client has its connection no more, and will make a new one. Says which calls were under way on it.
    fn detach(&mut self, who: Who) -> Vec<u64> {
        let Some(script) = self.script_mut(who) else { return Vec::new() };
        script.life = u64::MAX;
        script.cuts += 1;
        let call = script.call.take();
        let mut lost: Vec<u64> = script.side.drain(..).chain(script.errands.iter().map(|(id, _)| *id)).collect();
        if let Some(call) = call {
            lost.push(call.id);
            if !matches!(call.ask, Ask::Hello | Ask::Lease) {
                script.again = Some(call);
            }
        }
        script.lost_connection();
        for id in &lost {
            self.answers.remove(id);
            self.calling.remove(id);
        }
        lost
    }

    /// A root comes back: its key finds its tree as long as it is open.
    pub(crate) fn come_back(&mut self, index: usize) -> Checked {
        self.presences[index].deserted = false;
        let Some(tree) = self.roots[index].tree else { return Ok(()) };
        self.calls += 1;
        let call = Call { id: self.calls, ask: Ask::Open, request: String::new() };
        let open = self.state().trees.get(&tree).is_some_and(|tree| tree.closed_at.is_none());
        let asking = Asking {
            script: &self.roots[index],
            plan: &self.plan,
            settings: &self.settings[index],
            claim: None,
            tree: TreeId(9_000 + self.calls),
            ephemeral: true,
        };
        let command = match asking.command(&call) {
            Command::Open { call, open: mut asked } if open => {
                asked.request_id = format!("back{}", call.0);
                Command::Open { call, open: asked }
            }
            _ => Command::Attach { call: CallId(call.id), tree },
        };
        let outcome = self.broker.step(self.moment(), command).map_err(|error| format!("the broker stops: {error}"))?;
        let found = |effect: &Effect| match effect {
            Effect::Reply { reply: Reply::Opened { tree: found, created: false, .. }, .. } => *found == tree,
            _ => false,
        };
        // A closed tree may be forgotten by now; an open one is found.
        if open && !outcome.effects.iter().any(found) {
            return Err(format!("{} does not find its tree again: {:?}", self.roots[index].name, outcome.effects));
        }
        self.take(outcome);
        self.presence(index, true)
    }

    /// A tree that nobody closed closes only when it is ephemeral, its root has been gone long enough, and its work is done.
    pub(crate) fn closes_rightly(&self, record: &Record) -> Checked {
        let Event::TreeClosed { tree } = record.event else { return Ok(()) };
        let active = self.state().trees.get(&tree).is_some_and(|tree| tree.is_active());
        let gone = |presence: &Presence| presence.ephemeral && presence.absent.is_some_and(|since| since + REATTACH_MS <= self.now);
        let index = self.roots.iter().position(|root| root.tree == Some(tree));
        let by_itself = index.is_none_or(|index| gone(&self.presences[index]));
        if by_itself && !active { Ok(()) } else { Err(format!("{tree} is closed and nobody asked for it, active: {active}")) }
    }

    /// At the end of everything the roots go for good: no ephemeral tree is left open.
    pub(crate) fn all_leave(&mut self) -> Checked {
        for index in 0..self.roots.len() {
            if self.presences[index].ephemeral {
                self.presence(index, false)?;
            }
        }
        self.now += REATTACH_MS;
        self.step(Command::Tick)?;
        let left = |index: usize| {
            let tree = self.roots[index].tree.and_then(|tree| self.state().trees.get(&tree));
            self.presences[index].ephemeral && tree.is_some_and(|tree| tree.closed_at.is_none())
        };
        match (0..self.roots.len()).find(|index| left(*index)) {
            Some(index) => Err(format!("the tree of {} is open, and its root is gone", self.roots[index].name)),
            None => Ok(()),
        }
    }

    /// The daemon is told to leave when nothing runs, and not to if that takes too long.
    pub(crate) fn drain(&mut self, timeout_ms: u64) -> Checked {
        self.note("drains");
        self.calls += 1;
        self.step(Command::Drain { call: Some(CallId(self.calls)), now: false, timeout_ms: Some(timeout_ms) })
    }

    /// It leaves; another one is started over the same state.
    pub(crate) fn next_daemon(&mut self) -> Checked {
        self.note("daemon leaves");
        self.leaving = false;
        self.supervisor.crash();
        self.crash_broker(true)
    }
}
