//! Who has taken items in.

use roost_proto::link::ProcessIdentity;
use serde::{Deserialize, Serialize};

use crate::older;

/// Who has taken items in: a repeat of it is known by either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taker {
    /// The process, where it held the lease.
    #[serde(alias = "pid", deserialize_with = "older::some_process")]
    pub process: Option<ProcessIdentity>,
    /// The call.
    pub request_id: Option<String>,
}

impl Taker {
    /// Whether a repeat could be told from somebody else's call.
    pub(super) fn is_known(&self) -> bool {
        self.process.is_some() || self.request_id.is_some()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        let same_process = self.process.is_some() && self.process == other.process;
        same_process || (self.request_id.is_some() && self.request_id == other.request_id)
    }
}
