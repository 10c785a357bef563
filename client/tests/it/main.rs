//! The client against a scripted daemon: a thread on a Unix socket in a temporary directory. The real daemon is met in `tests/`.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod agent;
mod bounded;
mod commands;
mod completions;
mod connection;
mod fake;
mod lead;
mod logs;
mod peer;
mod run;
mod start;
mod tally;
mod words;
mod worker;
