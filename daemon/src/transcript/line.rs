//! What a transcript says: one JSON object a line, `{at_ms, epoch, kind, ...}`. `docs/operations.md` lists the kinds.
//!
//! Values only. It does not know where they come from and where they are written.

use roost_core::event::StopCause;
use roost_proto::id::{Epoch, MessageId, WorkerId};
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageReport;
use serde::Serialize;
use serde_json::value::RawValue;

/// About what a line takes without its texts.
const LINE_BYTES: usize = 256;

/// One line.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// The incarnation; 0 before the first.
    pub epoch: Epoch,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What went in or out.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// What a plain command found on its standard input when it was started. (A worker that speaks gets its task as an item.)
    Task {
        /// It.
        text: String,
    },
    /// Items that were handed over, as they were: the parameters of `deliver`, or the line on a woken command's standard input.
    Items {
        /// With sequence numbers, kinds and texts.
        delivery: Box<RawValue>,
    },
    /// Items that had been handed over and are not owed any more.
    Withdrawn {
        /// The parameters of `withdraw`.
        withdrawal: Box<RawValue>,
    },
    /// It took items in.
    Ack {
        /// Their numbers.
        items: Vec<u64>,
    },
    /// It read results by a call of its own.
    Read {
        /// Whose.
        workers: Vec<WorkerId>,
    },
    /// What its turn has said so far.
    Report {
        /// It.
        text: String,
    },
    /// Words.
    Message {
        /// Which message.
        message: MessageId,
        /// Which way.
        direction: Direction,
        /// The worker at the other end; `null` is the root.
        peer: Option<WorkerId>,
        /// What they say.
        text: String,
    },
    /// What its process had used when its turn ended or it did; what was reported between is not kept.
    Usage {
        /// Cumulative.
        #[serde(flatten)]
        report: UsageReport,
    },
    /// Its turn ended.
    Settle {
        /// What it has answered, if anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Bytes of the context that it saved along with it.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_bytes: Option<u64>,
        /// For its last turn: how it will end.
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Its last message was cut at a length limit of the model.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        length_limited: bool,
    },
    /// It was asked to park.
    ParkAsked {
        /// The parameters of `park`.
        ask: Box<RawValue>,
    },
    /// It parked.
    Parked {
        /// Bytes of the saved context.
        context_bytes: u64,
    },
    /// It is being woken, as this incarnation.
    Wake {
        /// Whether everything below it has ended.
        settled: bool,
    },
    /// It is being ended.
    Stop {
        /// Why.
        cause: StopCause,
    },
    /// It has ended: the last line, as a rule.
    Outcome {
        /// How.
        outcome: Outcome,
        /// For a plain command: the file with its output.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// Another broker goes on here. If the one before was killed, lines of its last moments may be missing.
    Restart,
    /// Lines that should be here could not be written.
    Gap {
        /// How many, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
        /// Why.
        why: Why,
    },
}

/// Which way words went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To this execution.
    In,
    /// From it.
    Out,
}

/// Why lines are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// More happened than could be written.
    Overflow,
    /// The file system is full, or so nearly full that the rest is left to the journal.
    NoSpace,
    /// The file could not be written for another reason, which the log has.
    Io,
    /// The last line was not whole: a broker was killed, or the machine, while it was written.
    Torn,
    /// The transcript is as large as one may be: this is its last line.
    Size,
}

impl Line {
    /// About how many bytes it takes while it waits.
    pub fn size(&self) -> usize {
        LINE_BYTES
            + match &self.what {
                What::Task { text } | What::Report { text } | What::Message { text, .. } => text.len(),
                What::Items { delivery: raw } | What::Withdrawn { withdrawal: raw } | What::ParkAsked { ask: raw } => raw.get().len(),
                What::Ack { items } => items.len() * size_of::<u64>(),
                What::Read { workers } => workers.len() * size_of::<u64>(),
                What::Settle { answer, .. } => answer.as_ref().map_or(0, String::len),
                What::Usage { .. }
                | What::Parked { .. }
                | What::Wake { .. }
                | What::Stop { .. }
                | What::Outcome { .. }
                | What::Restart
                | What::Gap { .. } => 0,
            }
    }

    /// Itself and its LF.
    pub fn json(&self) -> Vec<u8> {
        // Everything in it is a string, a number or JSON already.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}
