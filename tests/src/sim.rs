//! A simulated world around the real [`roost_core::broker::Broker`]: clock, journal, supervisor, kernel, workers and root clients.
//!
//! ```text
//!   rng.rs       numbers from a seed
//!   plan.rs      what each worker does, from the seed and its name alone
//!   script.rs    a client of the broker that goes through its plan: calls, answers, repeats after a crash
//!   act.rs       what clients do next: connect, ask, take answers and mail in, end
//!   mail.rs      what clients are handed unasked
//!   presence.rs  roots that leave and come back, second windows, lost connections, a daemon that is told to leave
//!   impostor.rs  processes that claim to be somebody else, or that are no more
//!   kernel.rs    processes and the supervisor's table of them
//!   journal.rs   what is on disk, and what a crash would lose
//!   world.rs     the pieces together; what may happen next, and its happening
//!   model.rs     a second, independent book-keeping from the committed events
//!   check.rs     what must hold after every step
//!   run.rs       one random run of a seed        explore.rs  all runs of a small case
//!   ownership.rs who may control whom: all pairs of a run
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
pub mod ownership;
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
