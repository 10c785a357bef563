//! The wing of processes: the only place that may say `Command`, `libc`, pidfd or `unsafe`.
//!
//! It knows the ids and the supervisor-broker link, and nothing of the core, the journal or the sessions.

pub mod adopt;
pub mod cgroup;
pub mod children;
pub mod descendants;
pub mod program;
pub mod reap;
pub mod signal;
pub mod spawn;
pub mod start;
pub mod watch;

#[cfg(test)]
mod tests;
