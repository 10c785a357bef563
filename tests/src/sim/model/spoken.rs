//! Words, deliveries and usage in the second book-keeping.

use roost_core::event::Spoken;

use super::super::Checked;
use super::Model;

impl Model {
    pub(super) fn spoken(&mut self, spoken: &Spoken) -> Checked {
        match spoken {
            Spoken::ResumeAccepted { worker, execution, .. } => {
                let known = self.worker(*worker)?;
                let Some(outcome) = known.outcome.take() else { return Err(format!("{worker} is resumed and has not ended (I6)")) };
                known.past.push((known.execution, outcome));
                known.execution = *execution;
                (known.started, known.parked, known.stopping, known.ready, known.at_once) = (false, false, false, None, false);
            }
            Spoken::LeaseTaken { .. }
            | Spoken::Busy { .. }
            | Spoken::HoldOver { .. }
            | Spoken::Said { .. }
            | Spoken::UsageReported { .. }
            | Spoken::Settled { .. }
            | Spoken::Answered { .. }
            | Spoken::StartupOver { .. }
            | Spoken::Acked { .. }
            | Spoken::Read { .. }
            | Spoken::WordsSent { .. }
            | Spoken::WordsReturned { .. }
            | Spoken::AllowanceSet { .. }
            | Spoken::GroupReleased { .. } => {}
        }
        Ok(())
    }
}
