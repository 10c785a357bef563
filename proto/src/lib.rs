//! What both ends of a Roost socket say: ids, outcomes, messages, frames. No I/O lives here.

pub mod bytes;

pub mod id;
pub mod link;

pub mod outcome;
pub mod paths;
