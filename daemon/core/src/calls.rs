//! Calls that wait for something to happen. They live as long as their connection and are not in the journal: a client that
//! lost its broker sends them again, with the same request id.

mod pending;

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{TreeId, WorkerId};

use crate::command::CallId;
use crate::event::Owner;
use crate::rejection::Rejection;
use crate::state::speech::Held;
use crate::time::Mono;

pub use pending::{Over, Pending, Want};

/// Who asks, when it is somebody of a tree.
pub type Asker = (TreeId, Owner);

/// All waiting calls.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    calls: BTreeMap<CallId, Pending>,
    watchers: BTreeMap<WorkerId, BTreeSet<CallId>>,
    by_asker: BTreeMap<Asker, BTreeSet<CallId>>,
    deadlines: BTreeSet<(Mono, CallId)>,
    over: BTreeSet<CallId>,
    /// Those of them whose askers have no slot: they are looked at again when their asker has one.
    held: BTreeMap<Asker, BTreeSet<CallId>>,
    /// Askers with a call that came, went or is over since they were last looked at.
    stirred: BTreeSet<Asker>,
    /// Hellos of processes whose start the supervisor has not reported yet.
    greeting: BTreeMap<WorkerId, BTreeSet<CallId>>,
}

impl Calls {
    /// Adds a call. It is over at once when nothing is left to wait for.
    pub fn add(&mut self, call: CallId, mut pending: Pending) {
        if pending.over.is_none() && pending.awaited.is_empty() && !matches!(pending.want, Want::Welcome(_) | Want::Drained { .. }) {
            pending.over = Some(Over::Done);
        }
        for worker in &pending.awaited {
            self.watchers.entry(*worker).or_default().insert(call);
        }
        if let Some(asker) = pending.asker {
            self.by_asker.entry(asker).or_default().insert(call);
            self.stirred.insert(asker);
        }
        if let Want::Welcome(claim) = &pending.want
            && let Some(worker) = claim.worker
        {
            self.greeting.entry(worker).or_default().insert(call);
        }
        self.deadlines.extend(pending.deadline.map(|deadline| (deadline, call)));
        if pending.over.is_some() {
            self.over.insert(call);
        }
        self.calls.insert(call, pending);
    }

    /// How many calls of this asker wait.
    pub fn count(&self, asker: Asker) -> usize {
        self.by_asker.get(&asker).map_or(0, BTreeSet::len)
    }

    /// A worker has ended: calls that waited for it alone, or for the first end, are over.
    pub fn note_end(&mut self, worker: WorkerId) {
        for call in self.watchers.remove(&worker).unwrap_or_default() {
            let Some(pending) = self.calls.get_mut(&call) else { continue };
            pending.awaited.remove(&worker);
            if pending.awaited.is_empty() || pending.want.at_first() {
                self.finish(call, Over::Done);
            }
        }
    }

    /// Says how a call is over, unless that is known already.
    pub fn finish(&mut self, call: CallId, over: Over) {
        if let Some(pending) = self.calls.get_mut(&call) {
            pending.over.get_or_insert(over);
            self.stirred.extend(pending.asker);
            self.over.insert(call);
        }
    }

    /// What a call waits for is there, whatever else has ended it in this step.
    pub fn has_come_to_pass(&mut self, call: CallId) {
        if let Some(pending) = self.calls.get_mut(&call) {
            pending.over = Some(Over::Done);
            self.stirred.extend(pending.asker);
            self.over.insert(call);
        }
    }

    /// Nothing that this asker waits for can be told to it any more, whether it is there or not.
    pub fn refuse_all(&mut self, asker: Asker, rejection: &Rejection) {
        for call in self.by_asker.get(&asker).cloned().unwrap_or_default() {
            if let Some(pending) = self.calls.get_mut(&call) {
                pending.over = Some(Over::Refused(rejection.clone()));
                self.over.insert(call);
            }
        }
    }

    /// The time of these calls is over.
    pub fn note_time(&mut self, now: Mono) {
        while let Some((at, call)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.remove(&(at, call));
            self.finish(call, Over::TimedOut);
        }
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The calls that are over and wait for their answer, those that are held back excepted.
    pub fn take_over(&mut self) -> BTreeSet<CallId> {
        std::mem::take(&mut self.over)
    }

    /// This call is over, and its asker must have a slot before it is answered.
    pub fn hold(&mut self, asker: Asker, call: CallId) {
        self.held.entry(asker).or_default().insert(call);
    }

    /// This asker has a slot: its calls that are over may be answered.
    pub fn release(&mut self, asker: Asker) {
        self.over.extend(self.held.remove(&asker).unwrap_or_default());
    }

    /// A call.
    pub fn get(&self, call: CallId) -> Option<&Pending> {
        self.calls.get(&call)
    }

    /// Whether a worker waits in a call that is not over.
    pub fn is_blocked(&self, asker: Asker) -> bool {
        self.of(asker).any(|(_, pending)| pending.over.is_none() && pending.want.blocks())
    }

    /// Whether a worker has a call that makes it wait, over or not.
    pub fn has_blocking(&self, asker: Asker) -> bool {
        self.of(asker).any(|(_, pending)| pending.want.blocks())
    }

    /// The newest waiting call of a worker.
    pub fn newest_wait(&self, asker: Asker) -> Option<CallId> {
        self.of(asker).filter(|(_, pending)| pending.over.is_none() && pending.want.blocks()).map(|(call, _)| call).max()
    }

    /// The call in which this asker waits, for the process that goes on in its place.
    pub fn held(&self, asker: Asker) -> Option<Held> {
        let call = self.newest_wait(asker)?;
        let pending = self.calls.get(&call)?;
        let request_id = pending.want.request_id()?.to_owned();
        let Pending { awaited, deadline, .. } = pending;
        Some(Held { request_id, awaited: awaited.clone(), any: pending.want.at_first(), deadline: *deadline, over: false })
    }

    /// This asker is to be looked at again.
    pub fn stir(&mut self, asker: Asker) {
        self.stirred.insert(asker);
    }

    /// Whether there are askers to look at again.
    pub fn is_stirred(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// Askers to look at again.
    pub fn take_stirred(&mut self) -> BTreeSet<Asker> {
        std::mem::take(&mut self.stirred)
    }

    /// Whether a worker has a waiting call that is over and not answered.
    pub fn may_go_on(&self, asker: Asker) -> bool {
        self.of(asker).any(|(_, pending)| pending.over.is_some() && pending.want.blocks())
    }

    /// Hellos that wait for this worker's process.
    pub fn greeting(&mut self, worker: WorkerId) -> Vec<CallId> {
        self.greeting.remove(&worker).unwrap_or_default().into_iter().collect()
    }

    /// All that wait.
    pub fn all(&self) -> Vec<CallId> {
        self.calls.keys().copied().collect()
    }

    /// The calls that wait for the daemon to be drained.
    pub fn draining(&self) -> Vec<CallId> {
        self.calls.iter().filter(|(_, pending)| matches!(pending.want, Want::Drained { .. })).map(|(call, _)| *call).collect()
    }

    /// Takes a call out.
    pub fn remove(&mut self, call: CallId) -> Option<Pending> {
        let pending = self.calls.remove(&call)?;
        self.over.remove(&call);
        for worker in &pending.awaited {
            forget(&mut self.watchers, worker, call);
        }
        if let Some(asker) = pending.asker {
            forget(&mut self.by_asker, &asker, call);
            forget(&mut self.held, &asker, call);
            self.stirred.insert(asker);
        }
        if let Want::Welcome(claim) = &pending.want
            && let Some(worker) = claim.worker
        {
            forget(&mut self.greeting, &worker, call);
        }
        if let Some(deadline) = pending.deadline {
            self.deadlines.remove(&(deadline, call));
        }
        Some(pending)
    }

    fn of(&self, asker: Asker) -> impl Iterator<Item = (CallId, &Pending)> + '_ {
        self.by_asker.get(&asker).into_iter().flatten().filter_map(|call| Some((*call, self.calls.get(call)?)))
    }
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<CallId>>, key: &K, call: CallId) {
    if let Some(calls) = index.get_mut(key) {
        calls.remove(&call);
        if calls.is_empty() {
            index.remove(key);
        }
    }
}
