//! How a client takes an answer in, and what must not be in one.

use std::collections::BTreeSet;

use roost_core::command::{Caller, Speak};
use roost_core::effect::{Reply, Standing};
use roost_core::event::Sent;
use roost_core::rejection::Rejection;
use roost_core::state::speech::Next;
use roost_proto::id::{Epoch, ExecutionId};

use super::super::mail::{Errand, Got};
use super::super::plan::{Gather, Op};
use super::super::script::{Ask, Call, Mode, Who, usage};
use super::super::world::{Answer, World};
use super::super::{Checked, check};

impl World {
    pub(super) fn take_in(&mut self, who: Who, call: Call, answer: Answer) -> Checked {
        match answer {
            Answer::Refused(rejection) => self.take_refusal(who, &call, &rejection),
            Answer::Reply(reply) => self.take_reply(who, &call, *reply),
        }
    }

    fn take_refusal(&mut self, who: Who, call: &Call, rejection: &Rejection) -> Checked {
        check::refusal(self, who, call, rejection)?;
        let speaks = self.speaks(who);
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        match (&call.ask, rejection) {
            (Ask::Wait { .. }, Rejection::Deadlock) if script.op() == Some(&Op::Gather(Gather::Wait)) => {
                let pc = script.at.pc;
                script.ops[pc] = Op::Gather(Gather::Park);
                self.note("deadlocks");
                return Ok(());
            }
            (Ask::Park, _) => {}
            // Its context was saved inside of this call.
            (_, Rejection::Parked) if speaks => {
                script.mode = Mode::Leaving;
                return Ok(());
            }
            _ => script.next(),
        }
        let harmless = matches!(
            rejection,
            Rejection::Budget { .. }
                | Rejection::BadValue { .. }
                | Rejection::NotRoot { .. }
                | Rejection::UnknownWorker { .. }
                | Rejection::Active { .. }
                | Rejection::TargetParked { .. }
                | Rejection::TargetStopping { .. }
                | Rejection::NotSteerable { .. }
                | Rejection::NotResumable { .. }
                | Rejection::NotWorker { .. }
                | Rejection::LeadParked
                | Rejection::LeadGone
                | Rejection::StaleLease
        );
        script.at.maimed |= !harmless;
        if call.ask == Ask::Park && script.op() == Some(&Op::Gather(Gather::Park)) {
            script.next();
        }
        Ok(())
    }

    fn take_reply(&mut self, who: Who, call: &Call, reply: Reply) -> Checked {
        match (&call.ask, reply) {
            (Ask::Hello | Ask::Lease, Reply::Welcome { caller, standing, .. }) => return self.welcome(who, &call.ask, caller, standing),
            (Ask::Settle, Reply::Settled(next)) => return self.settled(who, next),
            (Ask::Report { tool, sequence, used }, Reply::Done) => {
                let owner = self.owner(who);
                let epoch = match who {
                    Who::Proc(of) => of.epoch,
                    // Its pid stands for it.
                    Who::Root(index) => Epoch(u32::try_from(index).unwrap_or(u32::MAX) + 1),
                };
                let Some(script) = self.script_mut(who) else { return Ok(()) };
                script.in_tool = *tool;
                script.next();
                let tree = script.tree;
                return self.model.has_used(tree, owner, epoch, usage(*sequence, *used));
            }
            (Ask::Message { name, .. }, Reply::Sent { sent, placed, .. }) => {
                self.note(match sent {
                    Sent::Steering(_) => "messages steer",
                    Sent::AfterEnd(_) => "messages come after an end",
                    Sent::Resumes(_) => "messages resume",
                    Sent::ToLead => return Err(format!("a message to {name} went to a lead")),
                });
                if matches!(sent, Sent::Resumes(_)) != placed.is_some_and(|(_, placed)| placed.name == *name) {
                    return Err(format!("a message to {name} is {sent:?}, and is placed otherwise"));
                }
                if let Some(script) = self.script_mut(who) {
                    script.next();
                }
            }
            (Ask::Tell, Reply::Sent { sent: Sent::ToLead, .. }) => {
                self.note("leads are told");
                if let Some(script) = self.script_mut(who) {
                    script.next();
                }
            }
            (Ask::Wait { later, .. }, Reply::Ends { ends, pending, .. }) => {
                let all_told = ends.is_empty() && pending.is_empty();
                let gather = self.script(who).and_then(|script| script.op().cloned());
                let Some(script) = self.script_mut(who) else { return Ok(()) };
                for end in &ends {
                    script.told(end, *later)?;
                }
                match gather {
                    Some(Op::Gather(Gather::Wait)) if !all_told => {}
                    Some(Op::Gather(Gather::Settle)) => script.gathered = all_told,
                    _ => script.next(),
                }
                if *later && !ends.is_empty() {
                    self.note("waits tell later");
                    let executions: Vec<ExecutionId> = ends.iter().map(|end| end.execution).collect();
                    return self.run_errand(who, Errand::Told(executions.clone()), Speak::Told { executions });
                }
            }
            (_, reply) => self.take_other(who, call, reply)?,
        }
        Ok(())
    }

    fn welcome(&mut self, who: Who, ask: &Ask, caller: Caller, standing: Option<Box<Standing>>) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        script.caller = Some(caller);
        let continues = standing.and_then(|standing| standing.worker).and_then(|(.., continues)| continues);
        if let Some((_, request)) = script.at.held.take()
            && continues.as_ref() != Some(&request)
            && !script.at.maimed
        {
            return Err(format!("{} was parked in {request} and is to go on in {continues:?}", script.name));
        }
        if *ask == Ask::Lease && script.again.is_none() && script.op() == Some(&Op::Lease) {
            script.next();
        }
        // What it has taken in, and whose acknowledgement was lost with its answer, it acknowledges again.
        let unsure = std::mem::take(&mut script.unsure);
        for (_, got) in &unsure {
            if let Got::End { execution, .. } = got {
                script.learn(*execution);
            }
        }
        if !unsure.is_empty() {
            let speak = Speak::Ack { request_id: None, items: unsure.iter().map(|(seq, _)| *seq).collect() };
            self.run_errand(who, Errand::Ack(unsure), speak)?;
        }
        self.ask_again(who)
    }

    fn settled(&mut self, who: Who, next: Next) -> Checked {
        let Who::Proc(of) = who else { return Ok(()) };
        let worker = self.supervisor.procs.get(&of).and_then(|proc| self.state().workers.get(&proc.worker));
        if next == Next::Exit && worker.is_some_and(|worker| worker.stop.is_none()) {
            check::knows_all(self, who)?;
        }
        if let Some(script) = self.script_mut(who) {
            script.used.0 += 1;
            script.gathered = false;
            // What it is to go on with it has been handed, or is handed next.
            script.mode = match next {
                Next::Exit => Mode::Leaving,
                Next::Wait => Mode::Settled,
                Next::GoOn => Mode::Active,
            };
        }
        Ok(())
    }

    pub(super) fn speaks(&self, who: Who) -> bool {
        let Who::Proc(incarnation) = who else { return false };
        self.supervisor.procs.get(&incarnation).is_some_and(|proc| proc.program.speaks)
    }

    fn take_other(&mut self, who: Who, call: &Call, reply: Reply) -> Checked {
        let owned: BTreeSet<_> = self.model.children_of(self.owner(who), self.script(who).and_then(|script| script.tree));
        // Whoever was a stranger's when it was picked may have been adopted since.
        let adopted: BTreeSet<String> =
            owned.iter().filter_map(|worker| self.state().workers.get(worker)).map(|worker| worker.name.to_string()).collect();
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        match (&call.ask, reply) {
            (Ask::Open, Reply::Opened { tree, .. }) => {
                script.tree = Some(tree);
                script.caller = Some(Caller::Root(tree));
                script.next();
                if let Who::Root(index) = who {
                    return self.presence(index, true);
                }
                return Ok(());
            }
            (Ask::Launch { names, foreground }, Reply::Receipt { tasks, ends, .. }) => {
                let placed: Vec<&String> = tasks.iter().map(|task| &task.name).collect();
                if placed != names.iter().collect::<Vec<_>>() || (*foreground && ends.len() != names.len()) {
                    return Err(format!("{}: the receipt is of other tasks: {placed:?}", script.name));
                }
                script.at.children.extend(names.iter().cloned());
                ends.iter().try_for_each(|end| script.told(end, false))?;
            }
            (Ask::Read { .. }, Reply::Result(end)) if owned.contains(&end.worker) => {
                script.told(&end, false)?;
            }
            (Ask::Stop { foreign: true, names }, Reply::Stopped(_)) if !names.iter().all(|name| adopted.contains(name)) => {
                return Err(format!("{} stopped {names:?}, whom it does not own (I12)", script.name));
            }
            (Ask::Park, Reply::Parked) => {
                script.mode = Mode::Leaving;
                return Ok(());
            }
            _ => {}
        }
        script.next();
        Ok(())
    }
}
