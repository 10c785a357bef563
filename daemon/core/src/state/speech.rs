//! What is known of a worker that speaks the protocol, beyond what every worker has.

use std::collections::BTreeSet;

use roost_proto::id::WorkerId;
use serde::{Deserialize, Serialize};

use crate::event::TextId;
use crate::time::Mono;

/// One such worker, in its current execution.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Speech {
    /// Its living process has said hello.
    pub greeted: bool,
    /// When that must have happened.
    pub hello_by: Option<Mono>,
    /// It did not: its process is being killed, to be started again.
    pub late: bool,
    /// It has launched, said, taken in or waited for something, whoever it said it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acted: bool,
    /// Starts of this execution that came to nothing.
    pub tries: u32,
    /// Numbers the connections that spoke for it: what an older one says has no effect.
    pub lease: u64,
    /// It can save its context and go on in another process.
    pub can_park: bool,
    /// It takes items in while a turn is on.
    pub steers: bool,
    /// What this turn has said so far.
    pub said: Option<Said>,
    /// The last settle, for a repeat of it.
    pub settled: Option<(String, Next)>,
}

/// What a turn has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The text.
    pub text: TextId,
    /// It was cut at a length limit of the model.
    pub length_limited: bool,
}

/// What a settled worker was told to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Exit.
    Exit,
    /// Wait to be told something.
    Wait,
    /// Go on with what it is owed.
    GoOn,
}

/// The call in which a worker was parked. It is made again by the process that is woken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The call.
    pub request_id: String,
    /// Whose ends it still waits for.
    pub awaited: BTreeSet<WorkerId>,
    /// The first of them is enough.
    pub any: bool,
    /// When the call gives up.
    pub deadline: Option<Mono>,
    /// It has what it waited for.
    pub over: bool,
}

impl Held {
    /// One of those that it waits for has ended.
    pub fn note_end(&mut self, worker: WorkerId) {
        if self.awaited.remove(&worker) && (self.any || self.awaited.is_empty()) {
            self.over = true;
        }
    }
}
