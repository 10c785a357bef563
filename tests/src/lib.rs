//! The tests' own library: a simulated world around the real core, and what explores it.

pub mod sim;
