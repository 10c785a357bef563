//! Whom an event is about.

use super::events::{Subject, TreeEvent};

impl TreeEvent {
    /// The execution whose standing it changes, if it is about one.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Created { of, .. }
            | Self::Queued { of }
            | Self::Started { of }
            | Self::Running { of, .. }
            | Self::StartRetried { of }
            | Self::Blocked { of }
            | Self::SlotLent { of }
            | Self::WaitOver { of }
            | Self::Unblocked { of }
            | Self::Waiting { of }
            | Self::Resumed { of }
            | Self::ParkAsked { of }
            | Self::ParkCancelled { of }
            | Self::Parked { of }
            | Self::Woken { of, .. }
            | Self::Stopping { of }
            | Self::Reowned { of, .. }
            | Self::Finishing { of }
            | Self::Ended { of, .. } => Some(of),
            Self::Opened {}
            | Self::Message { .. }
            | Self::Delivered { .. }
            | Self::Undelivered { .. }
            | Self::Consumed { .. }
            | Self::CapSet { .. }
            | Self::PauseSet { .. }
            | Self::Interrupted {}
            | Self::Backlog { .. }
            | Self::Closed {} => None,
        }
    }
}
