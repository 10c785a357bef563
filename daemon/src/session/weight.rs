//! How a call's answer bears on the calls after it: what is large must not be asked for faster than it is read.

use roost_core::command::{Command, Speak};

use super::FromSession;

/// What it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nothing.
    Small,
    /// They are not read before it is here.
    First,
    /// Only a few like it may wait.
    Large,
}

impl Weight {
    /// That of this call.
    pub fn of(asked: &FromSession) -> Self {
        let FromSession::Command { command, .. } = asked else {
            return if matches!(asked, FromSession::Events { .. }) { Self::First } else { Self::Small };
        };
        if let Command::Result { wait, .. } = command {
            return if *wait { Self::Large } else { Self::First };
        }
        if let Command::Launch { launch, .. } = command {
            return if launch.foreground { Self::Large } else { Self::Small };
        }
        if let Command::Speak { speak, .. } = command {
            return if **speak == Speak::Inbox { Self::First } else { Self::Small };
        }
        // Three decide as whom the next call is made. What is looked at is large: a peer that reads none has one page of it on its way,
        // not hundreds.
        let first = matches!(
            command,
            Command::Hello { .. } | Command::Open { .. } | Command::Attach { .. } | Command::Status { .. } | Command::Usage { .. }
        );
        if first { Self::First } else { Self::Small }
    }
}
