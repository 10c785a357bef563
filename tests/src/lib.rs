//! Support for the tests of Roost: what decoders must keep, the simulated world around the core, and real processes.

pub mod block_on;
pub mod decoders;
pub mod real;
pub mod sim;
