//! The broker as a pure function.

pub mod event;
pub mod limits;
pub mod time;
