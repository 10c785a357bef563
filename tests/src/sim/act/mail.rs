//! What a worker that speaks the protocol is told without having asked, and what it says to that.

use roost_core::command::Command;
use roost_proto::id::Incarnation;

use super::super::kernel::Mail;
use super::super::script::{Mode, Who, context_of};
use super::super::world::World;
use super::super::{Checked, check};

impl World {
    pub(super) fn read_mail(&mut self, incarnation: Incarnation, mail: Mail, choice: u8) -> Checked {
        let Some(proc) = self.supervisor.procs.get_mut(&incarnation) else { return Ok(()) };
        let script = &mut proc.script;
        match mail {
            Mail::Items(items) => {
                let last = items.last().map_or(0, |(seq, _)| *seq);
                for (_, end) in &items {
                    check::announced(&script.name, end)?;
                    script.learn(end.worker);
                }
                script.mode = Mode::Active;
                self.note("deliveries");
                self.step(Command::Ack { incarnation, last })
            }
            Mail::ParkOk => {
                script.mode = Mode::Leaving;
                Ok(())
            }
            Mail::AskPark if matches!(script.mode, Mode::Settled | Mode::Ready) && choice == 0 => {
                script.mode = Mode::Ready;
                let (digest, context) = context_of(&script.name, &script.at);
                let at = script.at.clone();
                self.contexts.insert(digest, at);
                self.step(Command::ParkReady { incarnation, context })
            }
            Mail::AskPark if choice == 1 => self.step(Command::ParkDecline { incarnation, not_before_ms: 700 }),
            // It overhears the request, which runs out of time.
            Mail::AskPark => Ok(()),
        }
    }

    pub(super) fn settle(&mut self, incarnation: Incarnation) -> Checked {
        let Some(script) = self.script_mut(Who::Proc(incarnation)) else { return Ok(()) };
        script.mode = Mode::Settled;
        let (digest, context) = context_of(&script.name, &script.at);
        let at = script.at.clone();
        self.contexts.insert(digest, at);
        self.step(Command::Settle { incarnation, context })
    }
}
