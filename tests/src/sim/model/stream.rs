//! The numbered stream of each tree, as it becomes durable: without gaps, and in order for every execution (V4).

use roost_proto::id::{ExecutionId, TreeId};
use roost_proto::message::events::{NumberedEvent, Subject, TreeEvent};

use super::super::Checked;
use super::Model;

/// How far an execution has come in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    Created,
    Queued,
    Started,
    Ended,
}

impl Model {
    /// One event more.
    pub(crate) fn told(&mut self, tree: TreeId, event: &NumberedEvent) -> Checked {
        let last = self.spoken.numbers.entry(tree).or_default();
        if event.number != *last + 1 {
            return Err(format!("{tree}: event {} of the stream follows on {last} (V4)", event.number));
        }
        *last = event.number;
        match &event.event {
            TreeEvent::Created { of, .. } => self.stage(of, None, Stage::Created),
            TreeEvent::Queued { of } => self.stage(of, Some(Stage::Created), Stage::Queued),
            TreeEvent::Started { of } => self.stage(of, Some(Stage::Queued), Stage::Started),
            TreeEvent::Ended { of, .. } => {
                let before = self.spoken.stages.get(&of.execution).copied().filter(|stage| *stage != Stage::Created);
                self.stage(of, before.or(Some(Stage::Started)), Stage::Ended)
            }
            TreeEvent::Running { of, .. } | TreeEvent::Waiting { of } | TreeEvent::Parked { of } | TreeEvent::Woken { of, .. } => {
                self.stage(of, Some(Stage::Started), Stage::Started)
            }
            _ => Ok(()),
        }
    }

    fn stage(&mut self, of: &Subject, from: Option<Stage>, to: Stage) -> Checked {
        let execution: ExecutionId = of.execution;
        let before = self.spoken.stages.get(&execution).copied();
        if before != from || before == Some(Stage::Ended) {
            return Err(format!("{execution} of {} comes to {to:?} from {before:?} in the stream (V4)", of.name));
        }
        self.spoken.stages.insert(execution, to);
        Ok(())
    }
}
