//! The machine: [`Broker::step`] takes a command and says what happened and what is to be done.
//!
//! ```text
//!   command --> verb (lifecycle/) --> events --> State::apply
//!                                        |
//!               waiting calls (calls.rs) <-- ends, starts, time
//!                                        |
//!               schedule.rs  --> grants, parks --> events --> ... until nothing moves
//!                                        |
//!               answers, spawns, signals  --> effects, for the driver to release after the commit
//! ```
//!
//! It knows no clock, no disk and no socket, and the same commands at the same moments give the same events.

use std::collections::BTreeMap;

use roost_proto::id::TreeId;

use crate::answer;
use crate::calls::{Calls, Over, Pending, Want};
use crate::command::{CallId, Command};
use crate::effect::{Effect, Reply};
use crate::event::{Event, Grant, Owner, Record};
use crate::lifecycle::{authority, connect, deliver, launch, open, park, process, stop, timers, wait};
use crate::limits::{PARK_DEADLINE_MS, REATTACH_MS, RETENTION_MS};
use crate::rejection::Rejection;
use crate::schedule::{self, Decision, Rules};
use crate::state::tree::Tree;
use crate::state::worker::Phase;
use crate::state::{IllegalEvent, State};
use crate::step::{Step, tree_of};
use crate::time::{Mono, Now};
use crate::view;

/// What a step came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Events, for the journal.
    pub records: Vec<Record>,
    /// Effects, to be released after the commit of the events.
    pub effects: Vec<Effect>,
    /// Trees whose counts may have changed.
    pub changed: Vec<TreeId>,
}

/// The broker of one state directory.
#[derive(Debug, Clone)]
pub struct Broker {
    state: State,
    calls: Calls,
    rules: Rules,
    /// The last moment at which everything due was done.
    ticked: Mono,
    /// Until when clients of blocked workers may come back after a restart.
    reattach_until: Option<Mono>,
    /// Ephemeral trees: connections of the root, and since when there is none.
    roots: BTreeMap<TreeId, Presence>,
}

#[derive(Debug, Clone, Copy)]
struct Presence {
    connections: u32,
    since: Mono,
}

impl Broker {
    /// A broker over a state that was replayed.
    pub fn restore(state: State, cap_of_all: Option<u32>) -> Self {
        Self {
            state,
            calls: Calls::default(),
            rules: Rules { cap_of_all, draining: false },
            ticked: Mono(0),
            reattach_until: None,
            roots: BTreeMap::new(),
        }
    }

    /// The state, to look at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether a drain is on.
    pub fn is_draining(&self) -> bool {
        self.rules.draining
    }

    /// The cap over all trees.
    pub fn cap_of_all(&self) -> Option<u32> {
        self.rules.cap_of_all
    }

    /// When `Tick` must be sent at the latest, if nothing else comes before.
    pub fn next_deadline(&self) -> Option<Mono> {
        let after = self.ticked;
        let timers = self.state.timers.iter().map(|(at, _)| *at).find(|at| *at > after);
        let early = self.state.open_trees().filter_map(|tree| schedule::next_early_wake(&self.state, tree)).filter(|at| *at > after);
        let retention = self.state.closed.first().map(|(closed, _)| *closed + RETENTION_MS).filter(|at| *at > after);
        let absent = self.roots.values().filter(|root| root.connections == 0).map(|root| root.since + REATTACH_MS).filter(|at| *at > after);
        timers.into_iter().chain(early).chain(retention).chain(absent).chain(self.calls.next_deadline()).chain(self.reattach_until).min()
    }

    /// One step. An error is a fault of this program: nothing of the step may be written, and the broker must not go on.
    pub fn step(&mut self, now: Now, command: Command) -> Result<Outcome, IllegalEvent> {
        let mut step = Step::new(now, &mut self.state);
        let mut calls = std::mem::take(&mut self.calls);
        let mut turn = Turn { step: &mut step, calls: &mut calls, rules: &mut self.rules, roots: &mut self.roots };
        if matches!(command, Command::Reconcile { .. }) {
            self.reattach_until = Some(now.mono + REATTACH_MS);
        }
        turn.perform(command);
        if self.reattach_until.is_some_and(|until| until <= now.mono) {
            self.reattach_until = None;
            turn.give_up_on_lost_waits();
        }
        turn.pass_time();
        turn.settle();
        self.ticked = self.ticked.max(now.mono);
        let Step { records, effects, fault, .. } = step;
        self.calls = calls;
        match fault {
            Some(fault) => Err(fault),
            None => {
                let changed = changed(&self.state, &records);
                Ok(Outcome { records, effects, changed })
            }
        }
    }
}

fn changed(state: &State, records: &[Record]) -> Vec<TreeId> {
    let mut trees: Vec<TreeId> = records.iter().filter_map(|record| tree_of(state, &record.event)).collect();
    trees.sort_unstable();
    trees.dedup();
    trees
}

/// One turn of the machine.
struct Turn<'t, 's> {
    step: &'t mut Step<'s>,
    calls: &'t mut Calls,
    rules: &'t mut Rules,
    roots: &'t mut BTreeMap<TreeId, Presence>,
}

impl Turn<'_, '_> {
    fn perform(&mut self, command: Command) {
        let (step, calls) = (&mut *self.step, &mut *self.calls);
        match command {
            Command::Hello { call, claim } => answered(step, call, |step| connect::hello(step, calls, call, claim)),
            Command::Open { call, open } => answered(step, call, |step| open::open(step, call, *open)),
            Command::Attach { call, tree } => answered(step, call, |step| open::attach(step, call, tree)),
            Command::Launch { call, caller, launch } => {
                let draining = self.rules.draining;
                answered(step, call, |step| {
                    if draining {
                        return Err(Rejection::Draining);
                    }
                    let (tree, owner, job) = launch::launch(step, caller, &launch)?;
                    let want = if launch.foreground { Want::Results(job) } else { Want::Receipt(job) };
                    let workers = step.state.jobs.get(&job).map_or(&[][..], |job| &job.workers);
                    let awaited = if launch.foreground { wait::still_active(step.state, workers) } else { Default::default() };
                    calls.add(call, Pending { asker: Some((tree, owner)), want, awaited, deadline: None, over: None });
                    Ok(())
                });
            }
            Command::Wait { call, caller, request_id, names, any, timeout_ms } => {
                answered(step, call, |step| wait::wait(step, calls, call, caller, wait::Wait { request_id, names, any, timeout_ms }))
            }
            Command::Result { call, caller, tree, name, wait, timeout_ms } => {
                answered(step, call, |step| wait::result(step, calls, call, caller, wait::Read { tree, name, wait, timeout_ms }))
            }
            Command::Status { call, caller, tree, name, after } => {
                answered(step, call, |step| view::status(step, call, caller, tree, name.as_deref(), after));
            }
            Command::Count { call, caller } => answered(step, call, |step| {
                let (tree, _) = authority::asker(step.state, caller)?;
                let counts = view::counts(step.state.tree(tree)?);
                step.reply(call, Reply::Counts(counts));
                Ok(())
            }),
            Command::Stop { call, caller, names, no_wait } => answered(step, call, |step| {
                let stopping = stop::stop(step, caller, &names)?;
                let awaited = if no_wait { Default::default() } else { stopping.awaited.into_iter().collect() };
                let want = Want::Stopped(stopping.names);
                calls.add(call, Pending { asker: Some(stopping.asker), want, awaited, deadline: None, over: None });
                Ok(())
            }),
            Command::Interrupt { call, caller, no_wait } => answered(step, call, |step| {
                let (tree, stopped, awaited) = stop::interrupt(step, caller)?;
                let generation = step.state.tree(tree)?.generation;
                let awaited = if no_wait { Default::default() } else { awaited.into_iter().collect() };
                let want = Want::Interrupted { stopped, generation };
                calls.add(call, Pending { asker: Some((tree, Owner::Root)), want, awaited, deadline: None, over: None });
                Ok(())
            }),
            Command::Cap { call, caller, cap } => answered(step, call, |step| open::cap(step, call, caller, cap)),
            Command::Pause { call, caller, paused } => answered(step, call, |step| open::pause(step, call, caller, paused)),
            Command::Close { call, caller, now } => answered(step, call, |step| {
                let (tree, awaited) = open::close(step, caller, now)?;
                let stopped = u32::try_from(awaited.len()).unwrap_or(u32::MAX);
                let want = Want::Closed { tree, stopped };
                let awaited = awaited.into_iter().collect();
                calls.add(call, Pending { asker: Some((tree, Owner::Root)), want, awaited, deadline: None, over: None });
                Ok(())
            }),
            Command::Park { call, caller, context } => answered(step, call, |step| park::park(step, call, caller, context)),
            Command::Settle { incarnation, context } => park::settle(step, incarnation, context),
            Command::ParkReady { incarnation, context } => park::ready(step, incarnation, context),
            Command::ParkDecline { incarnation, not_before_ms } => park::decline(step, incarnation, not_before_ms),
            Command::Ack { incarnation, last } => deliver::ack(step, incarnation, last),
            Command::Abandon { calls: gone } => self.abandon(&gone),
            Command::RootPresence { tree, connections } => {
                let since = step.now.mono;
                self.roots.insert(tree, Presence { connections, since });
            }
            Command::Reconcile { children } => self.reconcile(children),
            Command::Spawned { incarnation, process } => process::spawned(step, incarnation, process),
            Command::SpawnFailed { incarnation, reason, transient } => process::spawn_failed(step, incarnation, reason, transient),
            Command::ContextCorrupt { incarnation } => process::context_corrupt(step, incarnation),
            Command::Exited { incarnation, status, leftovers } => process::exited(step, incarnation, status, leftovers),
            Command::Emptied { incarnation } => process::emptied(step, incarnation),
            Command::NeverStarted { incarnation } => process::never_started(step, incarnation),
            Command::Tick => {}
            Command::Drain { call, now, timeout_ms } => self.drain(call, now, timeout_ms),
        }
    }

    fn reconcile(&mut self, children: Vec<roost_proto::link::ChildReport>) {
        let since = self.step.now.mono;
        let ephemeral = self.step.state.open_trees().filter(|tree| tree.ephemeral);
        self.roots.extend(ephemeral.map(|tree| (tree.id, Presence { connections: 0, since })));
        process::reconcile(self.step, children);
        self.step.touched.extend(self.step.state.open.iter().copied());
    }

    fn drain(&mut self, call: Option<CallId>, now: bool, timeout_ms: Option<u64>) {
        self.rules.draining = true;
        let stopped = if now { stop::end_live(self.step) } else { 0 };
        // Without a call the answer goes nowhere; the number only has to be free.
        let call = call.unwrap_or(CallId(u64::MAX));
        let deadline = timeout_ms.map(|timeout| self.step.now.mono + timeout);
        self.calls.add(call, Pending { asker: None, want: Want::Drained { stopped }, awaited: Default::default(), deadline, over: None });
    }

    /// The connection of these calls is gone: their askers are not blocked by them any more.
    fn abandon(&mut self, gone: &[CallId]) {
        for call in gone {
            let Some(pending) = self.calls.remove(*call) else { continue };
            if let (true, Some(asker)) = (pending.want.blocks(), pending.asker)
                && !self.calls.has_blocking(asker)
            {
                self.unblock(asker.1);
            }
        }
    }

    /// A worker went on without its call having returned. A process that runs has a slot, whatever the cap says.
    fn unblock(&mut self, owner: Owner) {
        let Owner::Worker(worker) = owner else { return };
        let Some(record) = self.step.state.workers.get(&worker) else { return };
        if record.is_lent() {
            self.step.record(Event::SlotRetaken { worker });
        } else if matches!(record.phase, Phase::Blocked { .. }) {
            self.step.record(Event::WaitOver { worker });
        }
    }

    /// After a restart: blocked workers whose clients have not come back.
    fn give_up_on_lost_waits(&mut self) {
        let blocked: Vec<_> = self
            .step
            .state
            .workers
            .values()
            .filter(|worker| matches!(worker.phase, Phase::Blocked { .. }))
            .map(|worker| (worker.tree, Owner::Worker(worker.id)))
            .filter(|asker| !self.calls.has_blocking(*asker))
            .collect();
        blocked.into_iter().for_each(|asker| self.unblock(asker.1));
    }

    fn pass_time(&mut self) {
        timers::fire(self.step);
        let now = self.step.now.mono;
        self.calls.note_time(now);
        let deserted: Vec<TreeId> =
            self.roots.iter().filter(|(_, root)| root.connections == 0 && root.since + REATTACH_MS <= now).map(|(tree, _)| *tree).collect();
        for tree in deserted {
            let Some(record) = self.step.state.trees.get(&tree).filter(|tree| tree.ephemeral && tree.closed_at.is_none()) else {
                self.roots.remove(&tree);
                continue;
            };
            if !record.is_active() {
                self.step.record(Event::TreeClosed { tree });
                self.roots.remove(&tree);
            }
        }
        // Early wakes, and workers that could not be asked to park for a while, become possible by the mere passing of time.
        let state = &*self.step.state;
        let due = |tree: &&Tree| !tree.victims.is_empty() || schedule::next_early_wake(state, tree).is_some_and(|at| at <= now);
        let due: Vec<TreeId> = state.open_trees().filter(due).map(|tree| tree.id).collect();
        self.step.touched.extend(due);
        open::forget_old(self.step);
    }

    /// Runs waiting calls and the scheduler in turn until nothing moves.
    fn settle(&mut self) {
        loop {
            self.note_ends();
            self.block_and_unblock();
            while let Some(decision) = self.next_decision() {
                self.carry_out(decision);
                self.note_ends();
            }
            let answered = self.answer();
            let quiet = self.step.ended.is_empty() && self.step.touched.is_empty() && !self.calls.is_stirred();
            if (!answered && quiet) || self.step.fault.is_some() {
                return;
            }
        }
    }

    fn note_ends(&mut self) {
        for worker in std::mem::take(&mut self.step.ended) {
            self.calls.note_end(worker);
            deliver::rouse_lead(self.step, worker);
        }
        // What a client of a process that is no more still waits for must not be told to it: it is owed to the next process.
        for (worker, rejection) in std::mem::take(&mut self.step.left) {
            let Some(tree) = self.step.state.workers.get(&worker).map(|record| record.tree) else { continue };
            self.calls.refuse_all((tree, Owner::Worker(worker)), &rejection);
        }
        // What arrived while a worker was in its turn gives it another one.
        for worker in std::mem::take(&mut self.step.settled) {
            deliver::rouse(self.step, worker);
        }
        for worker in std::mem::take(&mut self.step.started) {
            for call in self.calls.greeting(worker) {
                let Some(Pending { want: Want::Welcome(claim), .. }) = self.calls.remove(call) else { continue };
                let calls = &mut *self.calls;
                answered(self.step, call, |step| connect::hello(step, calls, call, Some(*claim)));
            }
        }
    }

    /// Askers of waiting calls are blocked while one is not over, and wait for nothing once one is.
    fn block_and_unblock(&mut self) {
        for asker in self.calls.take_stirred() {
            let Owner::Worker(worker) = asker.1 else { continue };
            let Some(record) = self.step.state.workers.get(&worker) else { continue };
            if self.calls.may_go_on(asker) {
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
            Decision::AskPark(worker) => {
                let Some(incarnation) = self.step.state.workers.get(&worker).map(|record| record.incarnation()) else { return };
                let deadline = self.step.now.mono + PARK_DEADLINE_MS;
                self.step.record(Event::ParkAsked { worker, deadline });
                self.step.effects.push(Effect::AskPark { incarnation });
            }
            Decision::FailWait(worker) => {
                let asker = self.step.state.workers.get(&worker).map(|record| (record.tree, Owner::Worker(worker)));
                if let Some(call) = asker.and_then(|asker| self.calls.newest_wait(asker)) {
                    self.calls.finish(call, Over::Refused(Rejection::Deadlock));
                }
                self.step.record(Event::WaitOver { worker });
            }
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
            draining.into_iter().for_each(|call| self.calls.finish(call, Over::Done));
        }
        if self.leaves() {
            // Whoever still waits must hear why nothing will come: the next daemon goes on where this one ends.
            self.calls.all().into_iter().for_each(|call| self.calls.finish(call, Over::Refused(Rejection::Draining)));
        }
        for call in self.calls.over() {
            let Some(pending) = self.calls.get(call) else { continue };
            let waits_for_slot = pending.want.blocks()
                && match pending.asker {
                    Some((_, Owner::Worker(worker))) => {
                        self.step.state.workers.get(&worker).is_some_and(|worker| matches!(worker.phase, Phase::Blocked { .. }))
                    }
                    Some((_, Owner::Root)) | None => false,
                };
            if waits_for_slot {
                continue;
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

/// Runs a verb; its refusal is the answer.
fn answered(step: &mut Step<'_>, call: CallId, verb: impl FnOnce(&mut Step<'_>) -> Result<(), Rejection>) {
    let recorded = step.records.len();
    if let Err(rejection) = verb(step) {
        debug_assert_eq!(recorded, step.records.len(), "a refused command records nothing");
        step.refuse(call, rejection);
    }
}
