//! Being written.
pub mod real;
