//! One turn of the machine: a command goes to its verb, and time passes.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::TreeId;
use roost_proto::limits::REATTACH_MS;

use super::Presence;
use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller, Command, Launch, Speak};
use crate::effect::Holder;
use crate::event::{Event, Owner, StopCause};
use crate::holders::Holders;
use crate::lifecycle::{
    close_out, connect, deliver, launch, open, park, process, report, retention, settle, stop, timers, unblock, wait, words,
};
use crate::rejection::Rejection;
use crate::schedule::{self, Rules};
use crate::state::tree::Tree;
use crate::state::worker::{Phase, Worker};
use crate::step::Step;
use crate::time::Mono;
use crate::usage_view;
use crate::view;

/// One turn of the machine.
pub(super) struct Turn<'t, 's> {
    pub(super) step: &'t mut Step<'s>,
    pub(super) calls: &'t mut Calls,
    pub(super) rules: &'t mut Rules,
    pub(super) roots: &'t mut BTreeMap<TreeId, Presence>,
    pub(super) holders: &'t mut Holders,
    pub(super) overdue: &'t mut BTreeSet<TreeId>,
}

impl Turn<'_, '_> {
    pub(super) fn perform(&mut self, command: Command) {
        let (step, calls, holders) = (&mut *self.step, &mut *self.calls, &mut *self.holders);
        match command {
            Command::Hello { call, claim } => answered(step, call, |step| connect::hello(step, calls, holders, call, claim)),
            Command::Open { call, open } => answered(step, call, |step| open::open(step, call, *open)),
            Command::Attach { call, tree } => answered(step, call, |step| open::attach(step, call, tree)),
            Command::Launch { call, caller, launch } => self.launch(call, caller, &launch),
            Command::Wait { call, caller, request_id, names, any, tell_later, timeout_ms } => answered(step, call, |step| {
                wait::wait(step, calls, call, caller, wait::Wait { request_id, names, any, tell_later, timeout_ms })
            }),
            Command::Result { call, caller, tree, of, wait, request_id, timeout_ms } => {
                answered(step, call, |step| wait::result(step, calls, call, caller, wait::Read { tree, of, wait, request_id, timeout_ms }))
            }
            Command::Status { call, caller, tree, name, after } => {
                answered(step, call, |step| view::status(step, call, caller, tree, name.as_deref(), after));
            }
            Command::Count { call, caller } => answered(step, call, |step| view::count(step, call, caller)),
            Command::Stop { call, caller, request_id, names, no_wait } => answered(step, call, |step| {
                let stopping = stop::stop(step, caller, request_id, &names)?;
                let awaited = if no_wait { Default::default() } else { stopping.awaited.into_iter().collect() };
                let want = Want::Stopped(stopping.names);
                calls.add(call, Pending { asker: Some(stopping.asker), want, awaited, deadline: None, over: None });
                Ok(())
            }),
            Command::Interrupt { call, caller, request_id, no_wait } => answered(step, call, |step| {
                let (tree, stopped, awaited) = stop::interrupt(step, caller, request_id)?;
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
            Command::Speak { call, caller, lease, speak } => self.speak(call, caller, lease, *speak),
            Command::Usage { call, caller, tree, name, each, after } => answered(step, call, |step| {
                usage_view::read(step, call, caller, usage_view::Read { tree, name: name.as_deref(), each, after })
            }),
            Command::LeaseGone { tree, owner, lease } => holders.gone(Holder { tree, owner, lease }),
            Command::Abandon { calls: gone } => self.abandon(&gone),
            Command::RootPresence { tree, connections } => {
                let since = step.now.mono;
                self.roots.insert(tree, Presence { connections, since });
            }
            Command::Reconcile { children } => self.reconcile(children),
            Command::Spawned { incarnation, process } => process::spawned(step, incarnation, process),
            Command::SpawnFailed { incarnation, reason, transient } => process::spawn_failed(step, incarnation, reason, transient),
            Command::ContextCorrupt { incarnation, reason } => process::context_corrupt(step, incarnation, reason),
            Command::Exited { incarnation, status, leftovers } => process::exited(step, incarnation, status, leftovers),
            Command::Emptied { incarnation } => process::emptied(step, incarnation),
            Command::NeverStarted { incarnation } => process::never_started(step, incarnation),
            Command::Gc { call, sweep } => retention::gc(step, call, *self.rules, &sweep),
            Command::Tick => {}
            Command::Drain { call, now, timeout_ms } => self.drain(call, now, timeout_ms),
        }
    }

    fn launch(&mut self, call: CallId, caller: Caller, launch: &Launch) {
        let (draining, calls) = (self.rules.draining, &mut *self.calls);
        answered(self.step, call, |step| {
            let (tree, owner, job) = launch::launch(step, caller, launch, draining)?;
            let request_id = launch.request_id.clone();
            let want = if launch.foreground { Want::Results { job, request_id } } else { Want::Receipt(job) };
            let workers = step.state.jobs.get(&job).map_or(&[][..], |job| &job.workers);
            let awaited = if launch.foreground { wait::still_active(step.state, workers) } else { Default::default() };
            calls.add(call, Pending { asker: Some((tree, owner)), want, awaited, deadline: None, over: None });
            Ok(())
        });
    }

    fn speak(&mut self, call: CallId, caller: Caller, lease: Option<u64>, speak: Speak) {
        let (calls, holders) = (&mut *self.calls, &mut *self.holders);
        answered(self.step, call, |step| match speak {
            Speak::Told { executions } => deliver::told(step, call, caller, &executions),
            Speak::Report { activity, usage, says } => {
                report::report(step, holders, call, caller, lease, report::Report { activity, usage, says })
            }
            Speak::Settle { settle } => settle::settle(step, holders, call, caller, lease, settle),
            Speak::ParkReady { context } => park::ready(step, calls, call, caller, lease, context),
            Speak::ParkDecline { not_before_ms } => park::decline(step, call, caller, lease, not_before_ms),
            Speak::Ack { request_id, items } => deliver::ack(step, holders, call, caller, lease, request_id, &items),
            Speak::Inbox => deliver::inbox(step, call, caller),
            Speak::Message { request_id, digest, name, allowance } => {
                words::message(step, calls, call, caller, words::Once { request_id, digest }, &name, allowance)
            }
            Speak::TellLead { request_id, digest } => words::tell_lead(step, calls, call, caller, words::Once { request_id, digest }),
        });
    }

    fn reconcile(&mut self, children: Vec<roost_proto::link::ChildReport>) {
        let since = self.step.now.mono;
        let ephemeral = self.step.state.open_trees().filter(|tree| tree.ephemeral);
        self.roots.extend(ephemeral.map(|tree| (tree.id, Presence { connections: 0, since })));
        process::reconcile(self.step, children);
        // Whoever speaks has until now to come back and show that it is alive.
        let speaks = self.step.state.workers.values().filter(|worker| worker.speaks() && worker.phase == Phase::Running);
        self.step.turns.extend(speaks.map(|worker| worker.id).collect::<Vec<_>>());
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
            if let (true, Some(asker @ (_, Owner::Worker(worker)))) = (pending.want.blocks(), pending.asker)
                && !self.calls.has_blocking(asker)
            {
                unblock::stop_waiting(self.step, worker);
            }
        }
    }

    /// After a restart: blocked workers whose clients have not come back.
    pub(super) fn give_up_on_lost_waits(&mut self) {
        let lost = |worker: &&Worker| worker.is_blocked() && !self.calls.has_blocking((worker.tree, Owner::Worker(worker.id)));
        let lost: Vec<_> = self.step.state.workers.values().filter(lost).map(|worker| worker.id).collect();
        lost.into_iter().for_each(|worker| unblock::stop_waiting(self.step, worker));
    }

    /// Workers that speak and have shown no sign of life for too long: the watchdog of contract section 12.
    fn end_silent(&mut self) {
        for worker in self.holders.silent(self.step.now.mono) {
            let Some(record) = self.step.state.workers.get(&worker) else { continue };
            // Before its hello a process has its own time.
            let greeted = record.speech.as_ref().is_some_and(|speech| speech.greeted);
            if greeted && record.phase == Phase::Running && record.stop.is_none() {
                close_out::end_subtree(self.step, worker, StopCause::Idle);
            }
        }
    }

    /// Does what became due since the last step.
    pub(super) fn pass_time(&mut self, since: Mono) {
        self.end_silent();
        timers::fire(self.step, since);
        deliver::release_groups(self.step);
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
        retention::forget_old(self.step, *self.rules, since, self.overdue);
    }
}

/// Runs a verb; its refusal is the answer.
pub(super) fn answered(step: &mut Step<'_>, call: CallId, verb: impl FnOnce(&mut Step<'_>) -> Result<(), Rejection>) {
    let recorded = step.records.len();
    if let Err(rejection) = verb(step) {
        debug_assert_eq!(recorded, step.records.len(), "a refused command records nothing");
        step.refuse(call, rejection);
    }
}
