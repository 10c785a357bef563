//! What a client is told without having asked, and what it says to that.

use roost_core::command::Speak;
use roost_core::effect::Reply;

use super::super::Checked;
use super::super::mail::{Errand, Got, Mail};
use super::super::script::{Ask, Mode, Who, context_of};
use super::super::world::{Answer, World};

impl World {
    pub(super) fn read_mail(&mut self, who: Who, mail: Mail, choice: u8) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        match mail {
            Mail::Items { wake, mut items, .. } => {
                // It holds items back for a while, and drops what is withdrawn meanwhile.
                let gone = |seq: &u64| script.mail.iter().any(|mail| matches!(mail, Mail::Withdrawn(seqs) if seqs.contains(seq)));
                let under_way = |seq: &u64| script.errands.iter().any(|(_, errand)| errand.has(*seq));
                items.retain(|(seq, _)| !gone(seq) && !under_way(seq) && !script.confirmed.contains(seq));
                if wake && script.mode == Mode::Settled {
                    (script.mode, script.asked) = (Mode::Active, false);
                }
                self.note("deliveries");
                let speak = Speak::Ack { request_id: None, items: items.iter().map(|(seq, _)| *seq).collect() };
                self.run_errand(who, Errand::Ack(items), speak)
            }
            Mail::Withdrawn(seqs) => {
                for mail in &mut script.mail {
                    if let Mail::Items { items, .. } = mail {
                        items.retain(|(seq, _)| !seqs.contains(seq));
                    }
                }
                Ok(())
            }
            Mail::LeaseLost => self.ask_beside(who),
            Mail::AskPark if script.may_park() => self.answer_park(who, choice),
            Mail::AskPark => {
                script.asked = script.waits();
                Ok(())
            }
            Mail::Answer(_) => Ok(()),
        }
    }

    /// What it says to a request to park; the third way is nothing, so that it runs out of time.
    pub(super) fn answer_park(&mut self, who: Who, choice: u8) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        script.asked = false;
        match choice {
            0 => {
                let mut at = script.at.clone();
                at.held = script.call.as_ref().map(|call| (call.ask.clone(), call.request.clone()));
                let (digest, context) = context_of(&script.name, &at);
                self.contexts.insert(digest, at);
                self.run_errand(who, Errand::Ready, Speak::ParkReady { context: Some(context) })
            }
            1 => self.run_errand(who, Errand::Remark, Speak::ParkDecline { not_before_ms: 700 }),
            _ => Ok(()),
        }
    }

    /// It connects again, to have its lease back.
    fn ask_beside(&mut self, who: Who) -> Checked {
        self.note("leases are lost");
        if let Some(script) = self.script_mut(who) {
            script.life = u64::MAX;
        }
        Ok(())
    }

    pub(super) fn take_errand(&mut self, who: Who, errand: Errand, answer: Answer) -> Checked {
        let Some(script) = self.script_mut(who) else { return Ok(()) };
        let reply = match answer {
            Answer::Reply(reply) => *reply,
            Answer::Refused(_) => {
                match errand {
                    Errand::Ack(items) => script.unsure.extend(items),
                    // Its tree is closed, or it is nobody any more: what it has heard it has heard.
                    Errand::Told(_) | Errand::Ready | Errand::Remark => {}
                }
                return Ok(());
            }
        };
        match (errand, reply) {
            (Errand::Ack(items), Reply::Acked { accepted, gone }) => {
                if items.iter().any(|(seq, _)| accepted.contains(seq) == gone.contains(seq)) {
                    return Err(format!("{}: {items:?} are accepted {accepted:?} and gone {gone:?}", script.name));
                }
                for (seq, got) in items.iter().filter(|(seq, _)| accepted.contains(seq)) {
                    script.confirmed.insert(*seq);
                    script.takes_in(got)?;
                }
            }
            (Errand::Told(executions), Reply::Done) => script.at.by_call.extend(executions),
            (Errand::Ready, Reply::ParkReady(true)) => {
                script.mode = Mode::Leaving;
                self.note("parks on demand");
                if script_call(self, who).is_some_and(|ask| ask != Ask::Settle) {
                    self.note("parks in calls");
                }
            }
            (Errand::Ready, Reply::ParkReady(false)) | (Errand::Remark, Reply::Done) => {}
            (errand, reply) => return Err(format!("{errand:?} is answered with {reply:?}")),
        }
        Ok(())
    }
}

fn script_call(world: &World, who: Who) -> Option<Ask> {
    world.script(who)?.call.as_ref().map(|call| call.ask.clone())
}

impl super::super::script::Script {
    /// It has taken an item in, and the broker has confirmed that it was owed until then.
    fn takes_in(&mut self, got: &Got) -> Checked {
        let news = match got {
            Got::End { execution, .. } => {
                self.learn(*execution);
                !self.at.by_call.contains(execution) && self.at.by_item.insert(*execution)
            }
            Got::Words(message) | Got::Back(message) => self.at.read.insert(*message),
            Got::Task | Got::Notice => true,
        };
        if news { Ok(()) } else { Err(format!("{} takes in {got:?} for the second time (I10, I17)", self.name)) }
    }
}
