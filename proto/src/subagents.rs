//! The names that listeners of `subagents:` know.

use crate::message::events::TreeEvent;

impl TreeEvent {
    /// The name under which listeners of the `subagents:` events know it, where there is one.
    pub fn subagents_name(&self) -> Option<&'static str> {
        match self {
            Self::Created { .. } => Some("subagents:created"),
            Self::Started { .. } => Some("subagents:started"),
            Self::Message { to: Some(_), .. } => Some("subagents:steered"),
            Self::Ended { outcome, .. } if outcome.is_success() => Some("subagents:completed"),
            Self::Ended { .. } => Some("subagents:failed"),
            Self::Opened {}
            | Self::Queued { .. }
            | Self::Running { .. }
            | Self::StartRetried { .. }
            | Self::Blocked { .. }
            | Self::SlotLent { .. }
            | Self::WaitOver { .. }
            | Self::Unblocked { .. }
            | Self::Waiting { .. }
            | Self::Resumed { .. }
            | Self::ParkAsked { .. }
            | Self::ParkCancelled { .. }
            | Self::Parked { .. }
            | Self::Woken { .. }
            | Self::Message { to: None, .. }
            | Self::Delivered { .. }
            | Self::Undelivered { .. }
            | Self::Consumed { .. }
            | Self::Stopping { .. }
            | Self::Reowned { .. }
            | Self::Finishing { .. }
            | Self::CapSet { .. }
            | Self::PauseSet { .. }
            | Self::Interrupted { .. }
            | Self::Backlog { .. }
            | Self::Closed { .. } => None,
        }
    }
}
