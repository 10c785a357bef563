//! Being written.
pub mod decoders;
pub mod real;
