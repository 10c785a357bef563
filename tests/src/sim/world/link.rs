//! Effects on their way: answers and mail to clients, orders to the supervisor, processes that start and end, crashes.

use roost_core::broker::Broker;
use roost_core::command::{CallId, Command};
use roost_core::effect::{Effect, Holder, OwedKind, Reply, Spawn};
use roost_core::event::Owner;
use roost_proto::id::Incarnation;
use roost_proto::link::{ExitStatus, Signal};
use roost_proto::outcome::{Failure, Outcome};

use super::super::kernel::{Order, Proc};
use super::super::mail::{Got, Mail};
use super::super::plan::{Fate, Gather, Op, Program};
use super::super::rng::Rng;
use super::super::script::{Call, Mode, Progress, Script, Who};
use super::super::{Checked, check};
use super::{Answer, World};

impl World {
    pub(super) fn release(&mut self, effect: Effect) -> Checked {
        if let Some(order) = Order::of(&effect) {
            self.supervisor.orders.push_back(order);
            return Ok(());
        }
        match effect {
            Effect::Reply { call, reply } => {
                check::reply(self, call, &reply)?;
                self.connected(call, &reply);
                self.answer(call, Answer::Reply(Box::new(reply)));
            }
            Effect::Refuse { call, rejection } => {
                self.answer(call, Answer::Refused(rejection));
            }
            Effect::Deliver(delivery) => {
                for owed in &delivery.items {
                    check::owed(self, &delivery, owed)?;
                }
                // Clients hold an end back for a while, so that a withdrawal can overtake it.
                let ends = delivery.items.iter().any(|owed| matches!(owed.what, OwedKind::Completion(_)));
                let hold_ms = self.state().trees.get(&delivery.to.tree).map_or(0, |tree| tree.settings.timing.hold_ms);
                let ripe_at = if self.plan.wide && ends { self.now + hold_ms } else { 0 };
                self.post(delivery.to, Mail::of(&delivery, ripe_at));
            }
            Effect::Withdraw { to, items } => self.post(to, Mail::Withdrawn(items)),
            Effect::LeaseLost { from } => self.post(from, Mail::LeaseLost),
            Effect::AskPark { to, .. } => self.post(to, Mail::AskPark),
            Effect::ForgetText(_) | Effect::RemoveFiles { .. } => {}
            Effect::Spawn(_) | Effect::Signal { .. } | Effect::Forget { .. } | Effect::Adopt { .. } => {}
            Effect::Leave => self.leaving = true,
        }
        Ok(())
    }

    fn answer(&mut self, call: CallId, answer: Answer) {
        self.answers.insert(call.0, answer);
        let asked = |script: &&mut Script| {
            script.call.as_ref().is_some_and(|asked| asked.id == call.0) || script.errands.iter().any(|(id, _)| *id == call.0)
        };
        if let Some(who) = self.calling.get(&call.0).copied()
            && let Some(script) = self.script_mut(who).filter(asked)
        {
            script.mail.push_back(Mail::Answer(call.0));
        }
    }

    /// A connection has the lease of this welcome from here on.
    fn connected(&mut self, call: CallId, reply: &Reply) {
        let Reply::Welcome { standing: Some(standing), .. } = reply else { return };
        let lease = standing.holder.lease;
        let Some(who) = self.calling.get(&call.0).copied() else { return };
        if let Some(script) = self.script_mut(who).filter(|script| script.call.as_ref().is_some_and(|asked| asked.id == call.0)) {
            script.lease = Some(lease);
        }
    }

    /// Without a connection there is nobody to tell: the core has to tell again when there is one.
    fn post(&mut self, to: Holder, mail: Mail) {
        let life = self.life;
        let listens = |script: &&mut Script| script.life == life && script.lease == Some(to.lease);
        let script = match to.owner {
            Owner::Root => self.roots.iter_mut().find(|root| root.tree == Some(to.tree)),
            Owner::Worker(worker) => {
                let living = |proc: &&mut Proc| proc.worker == worker && proc.main;
                self.supervisor.procs.values_mut().find(living).map(|proc| &mut proc.script)
            }
        };
        if let Some(script) = script.filter(listens) {
            if let Mail::Items { items, .. } = &mail {
                script.handed.extend(items.iter().map(|(seq, _)| *seq));
            }
            script.mail.push_back(mail);
        }
    }

    pub(super) fn carry_out(&mut self) -> Checked {
        match self.supervisor.orders.pop_front() {
            None => Ok(()),
            Some(Order::Forget(incarnation)) => {
                self.supervisor.forget(incarnation);
                Ok(())
            }
            Some(Order::Adopt(incarnation)) => {
                self.supervisor.adopt(incarnation);
                Ok(())
            }
            Some(Order::Signal(incarnation, signal)) => {
                let script = self.script(Who::Proc(incarnation));
                let call = script.and_then(|script| script.call.as_ref()).map(|call| call.id);
                let calls: Vec<u64> = call.into_iter().chain(script.into_iter().flat_map(|script| script.side.iter().copied())).collect();
                self.supervisor.signal(incarnation, signal);
                if signal == Signal::Kill {
                    self.lost.extend(calls.into_iter().map(CallId));
                }
                Ok(())
            }
            Some(Order::Spawn(spawn)) => self.spawn(&spawn),
        }
    }

    fn spawn(&mut self, spawn: &Spawn) -> Checked {
        let incarnation = spawn.incarnation;
        if self.supervisor.holds(incarnation) {
            return Ok(());
        }
        let name = self.journal.replica().workers.get(&spawn.worker).map(|worker| worker.name.to_string()).unwrap_or_default();
        let program = self.plan.of(&name);
        let epoch = incarnation.epoch.0;
        let failed = |transient| Command::SpawnFailed { incarnation, reason: "planned".into(), transient };
        let mut quirk = Rng::of(self.plan.seed, &format!("{name}#{epoch}"));
        let wake_fails = quirk.chance(if self.plan.tidy { 0 } else { 60 });
        let failure = match (&spawn.wake, program.fate) {
            (Some(_), _) if program.corrupts => Some(Command::ContextCorrupt { incarnation, reason: "planned".into() }),
            (Some(_), _) if wake_fails => Some(failed(false)),
            (None, Fate::Missing) => Some(failed(false)),
            (None, Fate::Transient(epochs)) if epoch <= epochs => Some(failed(true)),
            (Some(_) | None, Fate::Starts | Fate::Missing | Fate::Transient(_) | Fate::Mute(_)) => None,
        };
        if let Some(failure) = failure {
            self.note("starts fail");
            self.supervisor.reports.push_back(failure);
            return Ok(());
        }
        let script = self.script_of(spawn, name, &program)?;
        self.pids += 1;
        let proc = Proc {
            worker: spawn.worker,
            pid: self.pids,
            main: true,
            leftovers: false,
            end_leftovers: spawn.leftovers_grace_ms.is_some(),
            stillborn: program.speaks && spawn.wake.is_some() && !self.plan.tidy && quirk.chance(60),
            termed: false,
            closed: false,
            program,
            script,
        };
        self.supervisor.start(incarnation, proc)
    }

    /// The client inside a new process: at its beginning, or where its context says, with what it is handed.
    fn script_of(&mut self, spawn: &Spawn, name: String, program: &Program) -> Checked<Script> {
        let run = self.journal.replica().workers.get(&spawn.worker).map_or(0, |worker| worker.past.len());
        let Some(wake) = &spawn.wake else {
            let mut script = Script::new(name, program.ops.clone(), Progress::default());
            script.tree = Some(spawn.tree);
            // Whoever speaks is handed its task.
            script.mode = if program.speaks { Mode::Settled } else { Mode::Active };
            return Ok(script);
        };
        self.note("wakes");
        let mut at = self.contexts.get(&wake.context.digest.0).cloned().ok_or("a wake with a context that nobody saved")?;
        let resumes = at.run != run;
        if resumes {
            self.note("resumes");
            (at.run, at.pc, at.held) = (run, 0, None);
            // What it was owed when it failed is not owed any more.
            let ends =
                self.journal.replica().workers.get(&spawn.worker).and_then(|worker| worker.past.last()).map(|past| past.outcome.clone());
            at.maimed |= !matches!(
                ends,
                Some(
                    Outcome::Completed
                        | Outcome::WrappedUp
                        | Outcome::Aborted { .. }
                        | Outcome::Failed(Failure::Provider { .. } | Failure::NoAnswer | Failure::Truncated)
                )
            );
        }
        let ops = self.plan.ops_of(&name, program, run);
        let mut script = Script::new(name, ops, at);
        script.tree = Some(spawn.tree);
        if program.speaks {
            let held = script.at.held.clone();
            script.again = held.map(|(ask, request)| Call { id: 0, ask, request });
            script.mode = if resumes { Mode::Settled } else { Mode::Active };
            return Ok(script);
        }
        let mut last = 0;
        for owed in &wake.items {
            let got = Got::of(owed);
            if let Got::End { execution, name } = &got {
                check::announced(&script.name, owed)?;
                let news = script.learn(*execution);
                if owed.seq <= last || !news {
                    return Err(format!("{} is told of {name} twice, or out of order (I10, I17)", script.name));
                }
            }
            last = owed.seq;
        }
        if wake.settled && matches!(script.op(), Some(Op::Gather(Gather::Park))) {
            script.next();
        }
        Ok(script)
    }

    pub(crate) fn crash_broker(&mut self, answers_arrive: bool) -> Checked {
        self.note("broker crashes");
        self.journal.lose();
        self.journal.replay()?;
        self.held.clear();
        self.lost.clear();
        if !answers_arrive {
            self.answers.clear();
        }
        // What was written to the link before is read before the new broker is spoken to.
        while !self.supervisor.orders.is_empty() {
            self.carry_out()?;
        }
        self.lost.clear();
        self.supervisor.reports.clear();
        self.ghosts.clear();
        self.life += 1;
        self.broker = Broker::restore(self.journal.replica().clone(), self.cap_of_all);
        self.last_step = None;
        self.leaving = false;
        self.live = self.model.clone();
        let now = self.now;
        self.presences.iter_mut().for_each(|root| root.absent = Some(now));
        let children = self.supervisor.hello();
        self.step(Command::Reconcile { children })
    }

    /// A main process ends, with what it leaves behind.
    pub(crate) fn end_process(&mut self, incarnation: Incarnation, status: ExitStatus, leaves: bool) {
        let Some(proc) = self.supervisor.procs.get_mut(&incarnation) else { return };
        proc.leftovers = leaves;
        let call = proc.script.call.take();
        self.lost.extend(call.map(|call| CallId(call.id)));
        self.lost.extend(proc.script.side.drain(..).map(CallId));
        self.lost.extend(proc.script.errands.drain(..).map(|(id, _)| CallId(id)));
        self.supervisor.exit(incarnation, status);
    }
}
