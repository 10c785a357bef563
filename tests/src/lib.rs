//! Support for the tests of Roost: what decoders must keep, the simulated world around the core, and real processes.

pub mod decoders;
pub mod not_tested;
pub mod real;
pub mod sim;
