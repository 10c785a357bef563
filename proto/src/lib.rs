//! What both ends of a Roost socket say: ids, outcomes, messages, frames. No I/O lives here.

pub mod bytes;
pub mod details;
pub mod duration;
pub mod frame;
pub mod id;
pub mod limits;
pub mod link;
pub mod message;
pub mod outcome;
pub mod paths;
pub mod rpc;
#[cfg(feature = "schema")]
pub mod schema;
mod subagents;
pub mod usage;
