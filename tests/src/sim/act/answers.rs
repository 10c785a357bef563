//! How a client takes an answer in, and what must not be in one.

use std::collections::BTreeSet;

use roost_core::command::Caller;
use roost_core::effect::Reply;
use roost_core::rejection::Rejection;

use super::super::plan::{Gather, Op};
use super::super::script::{Ask, Call, Mode, Who};
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
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        match (&call.ask, rejection) {
            (Ask::Wait { .. }, Rejection::Deadlock) if script.op() == Some(&Op::Gather(Gather::Wait)) => {
                let pc = script.at.pc;
                script.ops[pc] = Op::Gather(Gather::Park);
                self.note("deadlocks");
                return Ok(());
            }
            (Ask::Park, _) => {}
            _ => script.next(),
        }
        let harmless = matches!(
            rejection,
            Rejection::Budget { .. } | Rejection::NotRoot { .. } | Rejection::UnknownWorker { .. } | Rejection::Active { .. }
        );
        script.at.maimed |= !harmless;
        if call.ask == Ask::Park && script.op() == Some(&Op::Gather(Gather::Park)) {
            script.next();
        }
        Ok(())
    }

    fn take_reply(&mut self, who: Who, call: &Call, reply: Reply) -> Checked {
        match (&call.ask, reply) {
            (Ask::Hello, Reply::Welcome { caller, .. }) => {
                if let Some(script) = self.script_mut(who) {
                    script.caller = Some(caller);
                }
                self.ask_again(who)?;
                if let (Who::Proc(incarnation), Some(Mode::Settled | Mode::Ready)) = (who, self.script(who).map(|script| script.mode)) {
                    return self.settle(incarnation);
                }
                return Ok(());
            }
            (Ask::Wait { names, timeout_ms, .. }, Reply::Ends { ends, pending, .. }) => {
                let all_told = ends.is_empty() && pending.is_empty();
                let gather = self.script(who).and_then(|script| script.op().cloned());
                let Some(script) = self.script_mut(who) else { return Ok(()) };
                // What was delivered and whose acknowledgement was lost is still owed: such a worker knows by the item's number.
                let speaks =
                    script.ops.contains(&Op::Gather(Gather::Settle)) || script.ops.iter().any(|op| matches!(op, Op::Background { .. }));
                for end in &ends {
                    // A repeat of the same request is the same telling: it is taken in once, because it is answered once.
                    if !script.learn(end.worker) && names.is_empty() && !speaks {
                        return Err(format!("{} is told of {} twice (I10, I17)", script.name, end.name));
                    }
                }
                match (gather, who) {
                    (Some(Op::Gather(Gather::Settle)), Who::Proc(incarnation)) if *timeout_ms == Some(0) && !pending.is_empty() => {
                        return self.settle(incarnation);
                    }
                    (Some(Op::Gather(Gather::Wait | Gather::Settle)), _) if !all_told => return Ok(()),
                    _ => script.next(),
                }
            }
            (_, reply) => self.take_other(who, call, reply)?,
        }
        Ok(())
    }

    fn take_other(&mut self, who: Who, call: &Call, reply: Reply) -> Checked {
        let owned: BTreeSet<_> = self.model.children_of(self.owner(who), self.script(who).and_then(|script| script.tree));
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
                ends.iter().for_each(|end| {
                    script.learn(end.worker);
                });
            }
            (Ask::Read { .. }, Reply::Result(end)) if owned.contains(&end.worker) => {
                script.learn(end.worker);
            }
            (Ask::Stop { foreign: true, names }, Reply::Stopped(_)) => {
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
