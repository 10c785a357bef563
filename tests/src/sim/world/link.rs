//! Effects on their way: answers and mail to clients, orders to the supervisor, processes that start and end, crashes.

use roost_core::broker::Broker;
use roost_core::command::{CallId, Command};
use roost_core::effect::{Effect, Spawn};
use roost_proto::id::Incarnation;
use roost_proto::link::{ExitStatus, Signal};

use super::super::kernel::{Mail, Order, Proc};
use super::super::plan::{Fate, Gather, Op};
use super::super::rng::Rng;
use super::super::script::{Progress, Script, Who};
use super::super::{Checked, check};
use super::{Answer, World};

impl World {
    pub(super) fn release(&mut self, effect: Effect) -> Checked {
        if let Some(order) = Order::of(&effect) {
            self.supervisor.orders.push_back(order);
            return Ok(());
        }
        let (incarnation, mail) = match effect {
            Effect::Reply { call, reply } => {
                check::reply(self, call, &reply)?;
                self.answers.insert(call.0, Answer::Reply(Box::new(reply)));
                return Ok(());
            }
            Effect::Refuse { call, rejection } => {
                self.answers.insert(call.0, Answer::Refused(rejection));
                return Ok(());
            }
            Effect::Deliver { incarnation, items } => (incarnation, Mail::Items(items)),
            Effect::AskPark { incarnation } => (incarnation, Mail::AskPark),
            Effect::ParkOk { incarnation } => (incarnation, Mail::ParkOk),
            Effect::Spawn(_) | Effect::Signal { .. } | Effect::Forget { .. } | Effect::Adopt { .. } => return Ok(()),
            Effect::RemoveFiles { .. } => return Ok(()),
            Effect::Leave => {
                self.leaving = true;
                return Ok(());
            }
        };
        // Without a connection there is nobody to tell: the core has to tell again when there is one.
        let life = self.life;
        let connected = |proc: &&mut Proc| proc.main && proc.script.life == life && proc.script.caller.is_some();
        if let Some(proc) = self.supervisor.procs.get_mut(&incarnation).filter(connected) {
            proc.mail.push_back(mail);
        }
        Ok(())
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
        let wake_fails = Rng::of(self.plan.seed, &format!("{name}#{epoch}")).chance(if self.plan.tidy { 0 } else { 60 });
        let failure = match (&spawn.wake, program.fate) {
            (Some(_), _) if program.corrupts => Some(Command::ContextCorrupt { incarnation, reason: "planned".into() }),
            (Some(_), _) if wake_fails => Some(failed(false)),
            (None, Fate::Missing) => Some(failed(false)),
            (None, Fate::Transient(epochs)) if epoch <= epochs => Some(failed(true)),
            (Some(_) | None, Fate::Starts | Fate::Missing | Fate::Transient(_)) => None,
        };
        if let Some(failure) = failure {
            self.note("starts fail");
            self.supervisor.reports.push_back(failure);
            return Ok(());
        }
        let script = self.script_of(spawn, name, program.ops.clone())?;
        self.pids += 1;
        let proc = Proc {
            worker: spawn.worker,
            pid: self.pids,
            main: true,
            leftovers: false,
            end_leftovers: spawn.leftovers_grace_ms.is_some(),
            termed: false,
            closed: false,
            program,
            script,
            mail: Default::default(),
        };
        self.supervisor.start(incarnation, proc)
    }

    /// The client inside a new process: at its beginning, or where its context says, with what it is handed.
    fn script_of(&mut self, spawn: &Spawn, name: String, ops: Vec<Op>) -> Checked<Script> {
        let Some(wake) = &spawn.wake else {
            let mut script = Script::new(name, ops, Progress::default());
            script.tree = Some(spawn.tree);
            return Ok(script);
        };
        self.note("wakes");
        let at = self.contexts.get(&wake.context.digest.0).cloned().ok_or("a wake with a context that nobody saved")?;
        let mut script = Script::new(name, ops, at);
        script.tree = Some(spawn.tree);
        let mut last = 0;
        for (seq, end) in &wake.items {
            check::announced(&script.name, end)?;
            if *seq <= last || !script.learn(end.worker) {
                return Err(format!("{} is told of {} twice, or out of order (I10, I17)", script.name, end.name));
            }
            last = *seq;
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
        self.supervisor.procs.values_mut().for_each(|proc| proc.mail.clear());
        self.life += 1;
        self.broker = Broker::restore(self.journal.replica().clone(), self.cap_of_all);
        self.last_step = None;
        self.leaving = false;
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
        self.supervisor.exit(incarnation, status);
    }
}
