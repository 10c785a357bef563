//! What a client does next: connect, ask, take answers and mail in, end.

mod answers;
mod mail;

use roost_core::command::{CallId, Caller, Claim, Command, Role, Speak};
use roost_core::event::Owner;
use roost_proto::id::TreeId;
use roost_proto::link::ExitStatus;

use super::kernel::identity;
use super::mail::{Errand, Mail};
use super::plan::{Ending, Fate, Gather, Op, Which};
use super::script::{Ask, Asking, Call, Mode, Script, Who, context_of, token_of};
use super::world::World;
use super::{Checked, check};

impl World {
    /// In how many ways this client may go on now; 0 when it has to wait.
    pub(crate) fn choices(&self, who: Who) -> u8 {
        let Some(script) = self.script(who) else { return 0 };
        if let Who::Proc(incarnation) = who {
            let Some(proc) = self.supervisor.procs.get(&incarnation).filter(|proc| proc.main) else { return 0 };
            if proc.termed && !proc.program.stubborn {
                return 1;
            }
            if proc.stillborn {
                return 1;
            }
            if matches!(proc.program.fate, Fate::Mute(epochs) if incarnation.epoch.0 <= epochs) {
                return 0;
            }
            if script.mode == Mode::Leaving {
                return u8::from(!proc.program.lingers);
            }
            if proc.closed && script.mode == Mode::Settled {
                return 1;
            }
        } else if script.op().is_none() {
            return 0;
        }
        if script.life != self.life {
            return 1;
        }
        let goes_on = u8::from(self.goes_on(script));
        match script.mail.iter().find(|mail| mail.ripe_at() <= self.now) {
            Some(Mail::AskPark) if script.may_park() => 3,
            Some(_) => 1 + goes_on,
            None if script.asked && script.may_park() => 3,
            None => goes_on,
        }
    }

    fn goes_on(&self, script: &Script) -> bool {
        script.call.is_none() && script.mode == Mode::Active && script.errands.is_empty()
    }

    /// When the first of what clients hold back is theirs to take in.
    pub(crate) fn next_ripe(&self) -> Option<u64> {
        let procs = self.procs().filter(|(_, proc)| proc.main).map(|(_, proc)| &proc.script);
        let held = self.roots.iter().chain(procs).flat_map(|script| &script.mail).map(Mail::ripe_at);
        held.filter(|at| *at > self.now).min()
    }

    /// Whether the next thing of this client is its end.
    pub(crate) fn is_ending(&self, who: Who) -> bool {
        let Who::Proc(incarnation) = who else { return false };
        self.supervisor
            .procs
            .get(&incarnation)
            .is_some_and(|proc| proc.script.mode == Mode::Leaving || (proc.termed && !proc.program.stubborn))
    }

    pub(crate) fn act(&mut self, who: Who, choice: u8) -> Checked {
        if let Who::Proc(incarnation) = who
            && let Some(proc) = self.supervisor.procs.get(&incarnation)
        {
            if proc.termed && !proc.program.stubborn {
                self.end_process(incarnation, ExitStatus::Signal(15), false);
                return Ok(());
            }
            if proc.stillborn {
                self.end_process(incarnation, ExitStatus::Code(1), false);
                return Ok(());
            }
            // The end of its input tells whoever was not asked that it is parked.
            if proc.script.mode == Mode::Leaving || (proc.closed && proc.script.mode == Mode::Settled) {
                let leaves = proc.program.leaves;
                self.end_process(incarnation, ExitStatus::Code(0), leaves);
                return Ok(());
            }
        }
        let Some(script) = self.script(who) else { return Ok(()) };
        if script.life != self.life {
            return self.connect(who);
        }
        let ripe = script.mail.iter().position(|mail| mail.ripe_at() <= self.now);
        let first = ripe.and_then(|at| Some((at, script.mail.get(at).filter(|mail| **mail == Mail::AskPark || choice == 0)?.clone())));
        if let Some((at, mail)) = first {
            if let Some(script) = self.script_mut(who) {
                script.mail.remove(at);
            }
            return if let Mail::Answer(id) = mail { self.take_answer(who, id) } else { self.read_mail(who, mail, choice) };
        }
        if self.goes_on(script) {
            return self.go_on(who);
        }
        self.answer_park(who, choice)
    }

    /// The answer to an errand, or to the call of the plan.
    fn take_answer(&mut self, who: Who, id: u64) -> Checked {
        self.calling.remove(&id);
        let Some(answer) = self.answers.remove(&id) else { return Ok(()) };
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        if let Some(index) = script.errands.iter().position(|(of, _)| *of == id) {
            let (_, errand) = script.errands.remove(index);
            return self.take_errand(who, errand, answer);
        }
        match script.call.take_if(|call| call.id == id) {
            Some(call) => {
                script.asked = false;
                self.take_in(who, call, answer)
            }
            None => Ok(()),
        }
    }

    /// Connects to the broker that is there now; what was asked of the old one is asked again.
    fn connect(&mut self, who: Who) -> Checked {
        let life = self.life;
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        script.life = life;
        script.side.clear();
        script.lost_connection();
        script.caller = script.caller.filter(|_| matches!(who, Who::Root(_)));
        if let Some(call) = script.call.take()
            && !matches!(call.ask, Ask::Hello | Ask::Lease)
        {
            script.again = Some(call);
        }
        match who {
            Who::Proc(_) => self.ask(who, Ask::Hello),
            Who::Root(index) => {
                self.presence(index, true)?;
                let leased = self.script(who).is_some_and(|script| script.lease.is_some());
                if leased { self.ask(who, Ask::Lease) } else { self.ask_again(who) }
            }
        }
    }

    fn ask_again(&mut self, who: Who) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        let untold = std::mem::take(&mut script.untold);
        if !untold.is_empty() {
            self.run_errand(who, Errand::Told(untold.clone()), Speak::Told { executions: untold })?;
        }
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        match script.again.take() {
            // What the old broker answered just before it was lost has arrived.
            Some(call) if self.answers.contains_key(&call.id) => {
                if let Some(script) = self.script_mut(who) {
                    script.mail.push_front(Mail::Answer(call.id));
                    script.call = Some(call);
                }
                Ok(())
            }
            Some(call) => self.send(who, call.ask, call.request),
            None => Ok(()),
        }
    }

    fn ask(&mut self, who: Who, ask: Ask) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        let request = if matches!(ask, Ask::Hello | Ask::Lease) { String::new() } else { script.fresh_request() };
        self.send(who, ask, request)
    }

    fn send(&mut self, who: Who, ask: Ask, request: String) -> Checked {
        self.calls += 1;
        let id = if self.calls_by_caller { self.call_of(who) } else { self.calls };
        let call = Call { id, ask, request };
        self.calling.insert(id, who);
        let claim = self.claim(who);
        let Some(script) = self.script(who) else { return Ok(()) };
        let index = if let Who::Root(index) = who { index } else { 0 };
        let tree = TreeId(100 + index as u64 + self.life * 10);
        let asking =
            Asking { script, plan: &self.plan, settings: &self.settings[index], claim, tree, ephemeral: self.presences[index].ephemeral };
        let command = asking.command(&call);
        if matches!(call.ask, Ask::Park | Ask::Settle) {
            let (digest, _) = context_of(&script.name, &script.at);
            let at = script.at.clone();
            self.contexts.insert(digest, at);
        }
        if let Some(script) = self.script_mut(who) {
            // The end of a turn is the end of every tool, whatever becomes of the answer.
            script.in_tool &= call.ask != Ask::Settle;
            script.call = Some(call);
        }
        self.step(command)
    }

    /// A small call beside the one of the plan.
    pub(super) fn run_errand(&mut self, who: Who, errand: Errand, speak: Speak) -> Checked {
        self.calls += 1;
        let id = if self.calls_by_caller { self.errand_of(who) } else { self.calls };
        self.calling.insert(id, who);
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        script.errands.push((id, errand));
        let (caller, lease) = (script.caller.unwrap_or(Caller::Operator), script.lease);
        self.step(Command::Speak { call: CallId(id), caller, lease, speak: Box::new(speak) })
    }

    /// A client in the background waits; the worker goes on, and what that client is told is its own affair.
    fn wait_aside(&mut self, who: Who, name: String) -> Checked {
        self.note("waits in the background");
        self.calls += 1;
        let id = self.calls;
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        script.at.maimed = true;
        script.side.push(id);
        script.next();
        let caller = script.caller.unwrap_or(Caller::Operator);
        let request_id = format!("side{id}");
        self.step(Command::Wait {
            call: CallId(id),
            caller,
            request_id,
            names: vec![name],
            any: false,
            tell_later: false,
            timeout_ms: None,
        })
    }

    /// A number that depends on the caller alone: at most one call of each is under way.
    fn call_of(&self, who: Who) -> u64 {
        // A call that is made again over another connection is another one.
        let requests = self.script(who).map_or(0, |script| script.at.requests + script.cuts * 50);
        match who {
            Who::Root(index) => index as u64 * 1_000 + requests,
            Who::Proc(of) => 1_000_000 + of.execution.0 * 10_000 + u64::from(of.epoch.0) * 100 + requests,
        }
    }

    /// The same for errands, of which several may be.
    fn errand_of(&self, who: Who) -> u64 {
        let first = match who {
            Who::Root(index) => 5_000_000 + index as u64 * 1_000,
            Who::Proc(of) => 10_000_000 + of.execution.0 * 100_000 + u64::from(of.epoch.0) * 1_000,
        };
        let first = first + self.script(who).map_or(0, |script| script.cuts * 500);
        let taken = |id: &u64| self.answers.contains_key(id) || self.script(who).is_some_and(|script| script.has_errand(*id));
        (first..).find(|id| !taken(id)).unwrap_or(first)
    }

    pub(crate) fn claim(&self, who: Who) -> Option<Claim> {
        let incarnation = match who {
            Who::Root(index) => {
                let tree = self.roots.get(index)?.tree?;
                let token = self.state().trees.get(&tree)?.token;
                let lineage = vec![identity(u32::try_from(index).ok()? + 1)];
                return Some(Claim { tree, worker: None, token, epoch: None, lineage, role: Some(Role::Root) });
            }
            Who::Proc(incarnation) => incarnation,
        };
        let proc = self.supervisor.procs.get(&incarnation)?;
        let (digest, _) = context_of(&proc.script.name, &Default::default());
        Some(Claim {
            tree: proc.script.tree?,
            worker: Some(proc.worker),
            token: token_of(u64::try_from(digest).ok()?),
            epoch: Some(incarnation.epoch),
            lineage: vec![identity(proc.pid), identity(1)],
            role: proc.program.speaks.then_some(Role::Voice { can_park: proc.program.can_park, steers: proc.program.steers }),
        })
    }

    /// Its client dies while it waits; the worker itself goes on.
    pub(crate) fn abandon(&mut self, who: Who) {
        self.note("calls are abandoned");
        let Some(script) = self.script_mut(who) else { return };
        let Some(call) = script.call.take() else { return };
        script.at.maimed = true;
        script.next();
        self.lost.push(CallId(call.id));
    }

    /// The next thing of the plan.
    fn go_on(&mut self, who: Who) -> Checked {
        let passive = self.is_passive(who);
        let later = self.script(who).is_some_and(|script| self.plan.tells_later(&script.name, script.at.pc));
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        let child = |nth: usize| script.at.children.get(nth % script.at.children.len().max(1)).cloned();
        let Some(op) = script.op().cloned() else { return self.end(who) };
        let ask = match op {
            Op::Launch { tasks, foreground } => {
                let from = script.at.pc * 20;
                let names = (0..usize::try_from(tasks).unwrap_or(1)).map(|n| script.child_name(from + n)).collect();
                Some(Ask::Launch { names, foreground })
            }
            Op::Wait { which: Which::Nth(nth), timeout_ms } => {
                child(nth).map(|name| Ask::Wait { names: vec![name], any: false, timeout_ms, later: false })
            }
            Op::Wait { which, timeout_ms } => Some(Ask::Wait { names: Vec::new(), any: which == Which::Any, timeout_ms, later }),
            Op::Read { nth, wait } => child(nth).map(|name| Ask::Read { name, wait }),
            Op::Background { nth } => match child(nth) {
                Some(name) => return self.wait_aside(who, name),
                None => None,
            },
            Op::Stop { nth } => child(nth).map(|name| Ask::Stop { names: vec![name], foreign: false }),
            Op::Message { nth, allowance } => child(nth).map(|name| Ask::Message { name, allowance }),
            Op::Tell => Some(Ask::Tell),
            Op::Report { again, .. } if again && script.used.0 > 0 => {
                script.in_tool = false;
                Some(Ask::Report { tool: false, sequence: script.used.0, used: script.used.1 })
            }
            Op::Report { tool, used, again } => {
                // Whether this process has reported before is a matter of timing: a repeat of nothing adds nothing.
                script.used = (script.used.0 + 1, script.used.1 + if again { 0 } else { used });
                script.in_tool &= tool;
                Some(Ask::Report { tool, sequence: script.used.0, used: script.used.1 })
            }
            Op::Foreign => self.foreigner(who).map(|name| Ask::Stop { names: vec![name], foreign: true }),
            Op::Cap(cap) => Some(Ask::Cap(cap)),
            Op::CapAsWorker => Some(Ask::Cap(9)),
            Op::Park => {
                script.next();
                Some(Ask::Park)
            }
            Op::Gather(Gather::Park) => Some(Ask::Park),
            Op::Gather(Gather::Wait) => Some(Ask::Wait { names: Vec::new(), any: false, timeout_ms: None, later }),
            Op::Gather(Gather::Settle) if passive && !script.gathered => {
                Some(Ask::Wait { names: Vec::new(), any: false, timeout_ms: None, later })
            }
            Op::Gather(Gather::Settle) => Some(Ask::Settle),
            Op::Lease => Some(Ask::Lease),
            Op::Idle => Some(Ask::Idle),
            Op::Look => Some(Ask::Look),
            Op::Open => Some(Ask::Open),
            Op::Pause(paused) => Some(Ask::Pause(paused)),
            Op::Interrupt => Some(Ask::Interrupt),
            Op::Close { now } => Some(Ask::Close { now }),
        };
        match (ask, self.script_mut(who)) {
            (Some(ask), _) => self.ask(who, ask),
            (None, Some(script)) => {
                script.next();
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Whether nobody of its tree is handed ends.
    fn is_passive(&self, who: Who) -> bool {
        let tree = self.script(who).and_then(|script| script.tree).and_then(|tree| self.state().trees.get(&tree));
        tree.is_some_and(|tree| !tree.settings.delivery.pushes())
    }

    /// A worker of the same tree that this client does not own.
    fn foreigner(&self, who: Who) -> Option<String> {
        let tree = self.script(who)?.tree?;
        let me = self.owner(who);
        let state = self.journal.replica();
        let foreign: Vec<_> = state.workers.values().filter(|worker| worker.tree == tree && worker.owner != me).collect();
        let pick = usize::try_from(self.steps).unwrap_or(0) % foreign.len().max(1);
        foreign.get(pick).map(|worker| worker.name.to_string())
    }

    pub(crate) fn owner(&self, who: Who) -> Owner {
        match who {
            Who::Root(_) => Owner::Root,
            Who::Proc(incarnation) => self.supervisor.procs.get(&incarnation).map_or(Owner::Root, |proc| Owner::Worker(proc.worker)),
        }
    }

    fn end(&mut self, who: Who) -> Checked {
        let Who::Proc(incarnation) = who else { return Ok(()) };
        check::knows_all(self, who)?;
        let Some(proc) = self.supervisor.procs.get(&incarnation) else { return Ok(()) };
        let leaves = proc.program.leaves;
        let status = match proc.program.ending {
            Ending::Code(code) => ExitStatus::Code(code),
            Ending::Signal(signal) => ExitStatus::Signal(signal),
        };
        self.end_process(incarnation, status, leaves);
        Ok(())
    }
}
