//! Support for the tests of Roost: the simulated world around the core, and real processes.

pub mod real;
pub mod sim;
