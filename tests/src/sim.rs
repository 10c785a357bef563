//! A simulated world around the real [`roost_core::broker::Broker`]: clock, journal, supervisor, kernel, workers and root clients.
//!
//! ```text
//!   plan.rs      what each worker does, from the seed and its name alone
//!   script.rs    a client of the broker that goes through its plan: calls, answers, repeats after a crash
//!   mail.rs      what clients are handed unasked
//!   kernel.rs    processes and the supervisor's table of them
//!   world.rs     the pieces together; what may happen next, and its happening
//!   model.rs     a second, independent book-keeping from the committed events
//!   check.rs     what must hold after every step
//!   run.rs       one random run of a seed        explore.rs  all runs of a small case
//!   recovery.rs  one run cut at every commit     table.rs    scenarios written as text
//! ```
//! It has no clock, no hash order and no randomness but its own generator: the same seed is the same run.

mod act;
mod check;
pub mod explore;
mod impostor;
mod journal;
mod kernel;
mod mail;
mod model;
mod plan;
mod presence;
pub mod recovery;
pub mod rng;
pub mod run;
mod script;
pub mod table;
mod world;

/// A property that does not hold, in words.
pub type Broken = String;
/// What every part of the world returns.
pub type Checked<T = ()> = Result<T, Broken>;
