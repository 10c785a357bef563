//! How an execution ended: contract section 9. Status and text are independent; the text itself is not here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The one terminal record of an execution.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It ended its work by itself: for a plain command, exit 0.
    Completed,
    /// It was told to come to an end (a soft limit) and did: an answer, of work that was cut short.
    WrappedUp,
    /// It was cut off before it was through, for instance at a hard turn limit of its own.
    Aborted {
        /// What cut it off.
        reason: String,
    },
    /// It did not; why is in the failure. What it had written by then is kept and labelled partial.
    Failed(Failure),
    /// It was stopped: by its lead, an interrupt, or an operator.
    Stopped,
}

/// Why an execution failed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Failure {
    /// The process could not be started: the reason names what was missing.
    Spawn {
        /// The real cause, naming the directory or program at fault.
        reason: String,
    },
    /// A woken or retried process could not be started within its retries.
    Startup {
        /// What the last try said.
        reason: String,
    },
    /// The process ended by itself with a code other than 0.
    Exit {
        /// The exit code.
        code: i32,
    },
    /// The process was ended by a signal that Roost did not send.
    Crash {
        /// The signal's number.
        signal: i32,
    },
    /// The task's wall time was over.
    Timeout,
    /// The process is gone and nobody saw how it ended (the supervisor died too, or the machine was restarted).
    Lost,
    /// The saved context was not at the wake what it was when it was saved.
    ContextCorrupt {
        /// What is wrong with it; empty in records that are older than this field.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// Its lead failed, and the tree's setting ends descendants with it.
    ParentFailed,
    /// It broke the worker protocol, for instance by leaving without having settled.
    Protocol {
        /// How.
        reason: String,
    },
    /// Its model's provider refused or failed.
    Provider {
        /// What the provider said.
        message: String,
    },
    /// Its last message was cut at a length limit before it said anything.
    Truncated,
    /// Its own turn limit was reached.
    TurnLimit {
        /// What it said about it.
        message: String,
    },
    /// It showed no sign of life for the tree's idle time, outside of any tool.
    IdleTimeout,
    /// It ended its work without having said anything.
    NoAnswer,
}

impl Outcome {
    /// Whether it came to an end by itself, with an answer.
    pub fn is_success(&self) -> bool {
        matches!(self, Outcome::Completed | Outcome::WrappedUp)
    }

    /// Whether what the worker wrote is only a part of an answer.
    pub fn is_partial(&self) -> bool {
        !self.is_success()
    }

    /// The exit code that `roost run` passes on: 0, the command's own, 128 + signal, or 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome::Completed | Outcome::WrappedUp => 0,
            Outcome::Aborted { .. } => 1,
            // A code outside 1..=255 cannot be passed on by exit(2); it still must not become success.
            Outcome::Failed(Failure::Exit { code }) => u8::try_from(*code).ok().filter(|code| *code != 0).unwrap_or(1),
            Outcome::Failed(Failure::Crash { signal }) => u8::try_from(128 + signal).unwrap_or(255),
            Outcome::Failed(Failure::Timeout | Failure::IdleTimeout) => 124,
            Outcome::Failed(Failure::Spawn { .. }) => 127,
            Outcome::Failed(
                Failure::Startup { .. }
                | Failure::Lost
                | Failure::ContextCorrupt { .. }
                | Failure::ParentFailed
                | Failure::Protocol { .. }
                | Failure::Provider { .. }
                | Failure::Truncated
                | Failure::TurnLimit { .. }
                | Failure::NoAnswer,
            ) => 1,
            Outcome::Stopped => 130,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Completed => f.write_str("completed"),
            Outcome::WrappedUp => f.write_str("completed: it was told to come to an end"),
            Outcome::Aborted { reason } => write!(f, "aborted: {reason}"),
            Outcome::Failed(failure) => write!(f, "failed: {failure}"),
            Outcome::Stopped => f.write_str("stopped"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Spawn { reason } => write!(f, "could not be started: {reason}"),
            Failure::Startup { reason } => write!(f, "its process never came up: {reason}"),
            Failure::Exit { code } => write!(f, "exit code {code}"),
            Failure::Crash { signal } => write!(f, "ended by signal {signal}"),
            Failure::Timeout => f.write_str("its time was over"),
            Failure::Lost => f.write_str("lost: its process is gone and nobody saw how it ended"),
            Failure::ContextCorrupt { reason } if reason.is_empty() => f.write_str("its saved context is damaged"),
            Failure::ContextCorrupt { reason } => write!(f, "its saved context is damaged: {reason}"),
            Failure::ParentFailed => f.write_str("ended because its lead failed"),
            Failure::Protocol { reason } => write!(f, "it broke the worker protocol: {reason}"),
            Failure::Provider { message } => write!(f, "its model's provider failed: {message}"),
            Failure::Truncated => f.write_str("its last message was cut at a length limit and says nothing"),
            Failure::TurnLimit { message } => write!(f, "its turn limit was reached: {message}"),
            Failure::IdleTimeout => f.write_str("it showed no sign of life"),
            Failure::NoAnswer => f.write_str("it ended without an answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failure_passes_for_success() {
        for code in [-1, 1, 3, 255, 256, 512] {
            assert_ne!(Outcome::Failed(Failure::Exit { code }).exit_code(), 0, "{code}");
        }
        assert_eq!(Outcome::Failed(Failure::Exit { code: 3 }).exit_code(), 3);
        assert_eq!(Outcome::Failed(Failure::Crash { signal: 9 }).exit_code(), 137);
    }

    #[test]
    fn the_json_says_status_and_kind_on_one_level() {
        let json = serde_json::to_string(&Outcome::Failed(Failure::Crash { signal: 9 }));
        assert_eq!(json.ok().as_deref(), Some(r#"{"status":"failed","kind":"crash","signal":9}"#));
    }
}
