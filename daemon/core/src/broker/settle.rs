//! The end of a turn: waiting calls and the scheduler run in turn until nothing moves.

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::Signal;

use super::turn::{Turn, answered};
use crate::answer;
use crate::calls::{Over, Pending, Want};
use crate::effect::{Effect, Holder};
use crate::event::{Event, Grant, Owner};
use crate::lifecycle::{connect, deliver};
use crate::rejection::Rejection;
use crate::schedule::{self, Decision};
use crate::state::worker::{Phase, Worker};

impl Turn<'_, '_> {
    /// Runs waiting calls and the scheduler in turn until nothing moves.
    pub(super) fn settle(&mut self) {
        loop {
            self.note_ends();
            self.block_and_unblock();
            self.note_ends();
            while let Some(decision) = self.next_decision() {
                self.carry_out(decision);
                self.note_ends();
            }
            let answered = self.answer();
            let quiet =
                self.step.ended.is_empty() && self.step.touched.is_empty() && self.step.unblocked.is_empty() && !self.calls.is_stirred();
            if (!answered && quiet) || self.step.fault.is_some() {
                return;
            }
        }
    }

    fn note_ends(&mut self) {
        for worker in std::mem::take(&mut self.step.ended) {
            self.calls.note_end(worker);
            self.holders.rest(worker);
        }
        // What a client of a process that is no more still waits for must not be told to it: it is owed to the next process.
        for (worker, rejection) in std::mem::take(&mut self.step.left) {
            let Some(tree) = self.step.state.workers.get(&worker).map(|record| record.tree) else { continue };
            self.calls.refuse_all((tree, Owner::Worker(worker)), &rejection);
            // Nor does its connection speak for the next process, whether its end was noticed or not.
            if matches!(rejection, Rejection::StaleEpoch { .. }) {
                self.holders.leave(tree, Owner::Worker(worker));
            }
        }
        for worker in std::mem::take(&mut self.step.unblocked) {
            let Some(tree) = self.step.state.workers.get(&worker).map(|record| record.tree) else { continue };
            self.calls.release((tree, Owner::Worker(worker)));
        }
        self.hand_over();
        for worker in std::mem::take(&mut self.step.started) {
            for call in self.calls.greeting(worker) {
                let Some(Pending { want: Want::Welcome(claim), .. }) = self.calls.remove(call) else { continue };
                let (calls, holders) = (&mut *self.calls, &mut *self.holders);
                answered(self.step, call, |step| connect::hello(step, calls, holders, call, Some(*claim)));
            }
        }
    }

    /// What came in while a settled worker waited gives it a turn, and whoever holds a lease is handed what is owed to it.
    fn hand_over(&mut self) {
        while let Some((tree, owner)) = self.step.mail.pop_first() {
            let noted = self.step.records.len();
            if let Owner::Worker(worker) = owner {
                deliver::rouse(self.step, worker);
            }
            if noted < self.step.records.len() {
                // It goes on, and comes round again to be told so.
                if let Some(holding) = self.holders.get_mut(tree, owner) {
                    holding.knows_turn = false;
                }
                continue;
            }
            deliver::withdraw(self.step, self.holders, tree, owner);
            deliver::push(self.step, self.holders, tree, owner);
        }
        for worker in std::mem::take(&mut self.step.turns) {
            let Some(record) = self.step.state.workers.get(&worker).filter(|record| record.speaks()) else { continue };
            let idle_ms = self.step.state.trees.get(&record.tree).map_or(0, |tree| tree.settings.timing.idle_ms);
            self.holders.beat(worker, self.step.now.mono, idle_ms, None);
        }
    }

    /// Askers of waiting calls are blocked while one is not over, and wait for nothing once one is.
    fn block_and_unblock(&mut self) {
        for asker in self.calls.take_stirred() {
            let Owner::Worker(worker) = asker.1 else { continue };
            let Some(record) = self.step.state.workers.get(&worker) else { continue };
            if self.calls.may_go_on(asker) {
                // What it waited for is there before it has parked.
                if matches!(record.phase, Phase::ParkAsked { blocked: true, .. }) {
                    let not_before = self.step.now.mono;
                    self.step.record(Event::ParkCancelled { worker, not_before });
                }
                let Some(record) = self.step.state.workers.get(&worker) else { continue };
                if matches!(record.phase, Phase::Blocked { over: None, .. }) {
                    self.step.record(Event::WaitOver { worker });
                }
            } else if record.phase == Phase::Running && self.calls.is_blocked(asker) {
                self.step.record(Event::Blocked { worker });
            }
        }
    }

    fn next_decision(&mut self) -> Option<Decision> {
        let (rules, now) = (*self.rules, self.step.now.mono);
        if self.step.fault.is_some() {
            return None;
        }
        // Under a cap over all trees a slot that one gives back may be another's.
        if rules.cap_of_all.is_some() && !self.step.touched.is_empty() {
            let of = |tree: &TreeId| self.step.state.trees.get(tree).and_then(|tree| schedule::decide(self.step.state, rules, tree, now));
            let decision = schedule::order(self.step.state).iter().find_map(of);
            if decision.is_none() {
                self.step.touched.clear();
            }
            return decision;
        }
        while let Some(tree) = self.step.touched.first().copied() {
            let decision = self.step.state.trees.get(&tree).and_then(|tree| schedule::decide(self.step.state, rules, tree, now));
            if decision.is_some() {
                return decision;
            }
            self.step.touched.remove(&tree);
        }
        None
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Grant(worker, grant) => {
                let Some(record) = self.step.state.workers.get(&worker) else { return };
                let next = roost_proto::id::Epoch(record.epoch.0 + 1);
                let epoch = if grant == Grant::Return { record.epoch } else { next };
                let at_once = grant == Grant::Start && self.step.accepted_here(record.job);
                self.step.record(Event::SlotTaken { worker, epoch, grant, at_once });
                if grant != Grant::Return {
                    self.step.spawn(worker);
                } else if let Some(tree) = self.step.state.workers.get(&worker).map(|record| record.tree) {
                    // It may have another call in which it goes on waiting.
                    self.calls.stir((tree, Owner::Worker(worker)));
                }
            }
            Decision::Lend(worker) => self.step.record(Event::SlotLent { worker }),
            Decision::AskPark(worker) => self.ask_park(worker),
            Decision::FailWait(worker) => {
                let asker = self.step.state.workers.get(&worker).map(|record| (record.tree, Owner::Worker(worker)));
                if let Some(call) = asker.and_then(|asker| self.calls.newest_wait(asker)) {
                    self.calls.finish(call, Over::Refused(Rejection::Deadlock));
                }
                self.step.record(Event::WaitOver { worker });
            }
        }
    }

    /// A worker that can is asked; one that has settled and cannot goes on later from what its settle has saved.
    fn ask_park(&mut self, worker: WorkerId) {
        let Some(record) = self.step.state.workers.get(&worker) else { return };
        let (tree, incarnation, context) = (record.tree, record.incarnation(), record.context);
        let asks = record.parks_in_calls();
        if let (false, Some(context)) = (asks, context) {
            self.step.record(Event::Parked { worker, context, held: None });
            self.step.effects.push(Effect::Signal { incarnation, signal: Signal::CloseStdin });
            return;
        }
        let patience_ms = self.step.state.timing_of(worker).map_or(0, |timing| timing.park_deadline_ms);
        let patience_ms = (patience_ms > 0).then_some(patience_ms);
        let deadline = patience_ms.map(|patience_ms| self.step.now.mono + patience_ms);
        self.step.record(Event::ParkAsked { worker, deadline });
        let owner = Owner::Worker(worker);
        // Without a connection it is asked when it is back, or its time runs out.
        if let Some(holding) = self.holders.get(tree, owner) {
            let to = Holder { tree, owner, lease: holding.lease };
            self.step.effects.push(Effect::AskPark { to, deadline_ms: patience_ms });
        }
    }

    /// Whether nothing is live and a drain waited for that.
    fn leaves(&self) -> bool {
        self.rules.draining
            && self.calls.draining().into_iter().any(|call| self.calls.get(call).is_some_and(|p| p.over == Some(Over::Done)))
    }

    /// Answers the calls that are over and whose askers may go on. Says whether there was one.
    fn answer(&mut self) -> bool {
        let mut any = false;
        if self.rules.draining && self.step.state.workers.values().all(|worker| !worker.has_process()) {
            let draining = self.calls.draining();
            // Also those whose time has run out in this very step.
            draining.into_iter().for_each(|call| self.calls.has_come_to_pass(call));
        }
        if self.leaves() {
            // Whoever still waits must hear why nothing will come: the next daemon goes on where this one ends.
            self.calls.all().into_iter().for_each(|call| self.calls.finish(call, Over::Refused(Rejection::Draining)));
        }
        for call in self.calls.take_over() {
            let Some(pending) = self.calls.get(call) else { continue };
            let is_blocked = |worker| self.step.state.workers.get(&worker).is_some_and(Worker::is_blocked);
            match pending.asker {
                Some(asker @ (_, Owner::Worker(worker))) if pending.want.blocks() && is_blocked(worker) => {
                    self.calls.hold(asker, call);
                    continue;
                }
                Some(_) | None => {}
            }
            let Some(pending) = self.calls.remove(call) else { continue };
            any = true;
            if matches!(pending.want, Want::Drained { .. }) && pending.over == Some(Over::TimedOut) {
                self.rules.draining = false;
                self.step.touched.extend(self.step.state.open.iter().copied());
            }
            answer::answer(self.step, call, pending);
        }
        any
    }
}
