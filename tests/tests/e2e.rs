//! Real processes from end to end: the daemon, the command, the kernel. One private daemon per test; waits are events.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "e2e/caps.rs"]
mod caps;
#[path = "e2e/cgroups.rs"]
mod cgroups;
#[path = "e2e/config.rs"]
mod config;
#[path = "e2e/daemon.rs"]
mod daemon;
#[path = "e2e/deaths.rs"]
mod deaths;
#[path = "e2e/doctor.rs"]
mod doctor;
#[path = "e2e/environment.rs"]
mod environment;
#[path = "e2e/events.rs"]
mod events;
#[path = "e2e/export.rs"]
mod export;
#[path = "e2e/gc.rs"]
mod gc;
#[path = "e2e/hostile.rs"]
mod hostile;
#[path = "e2e/json.rs"]
mod json;
#[path = "e2e/many.rs"]
mod many;
#[path = "e2e/metrics.rs"]
mod metrics;
#[path = "e2e/mistakes.rs"]
mod mistakes;
#[path = "e2e/output.rs"]
mod output;
#[path = "e2e/ownership.rs"]
mod ownership;
#[path = "e2e/parking.rs"]
mod parking;
#[path = "e2e/root.rs"]
mod root;
#[path = "e2e/run.rs"]
mod run;
#[path = "e2e/settings.rs"]
mod settings;
#[path = "e2e/starting.rs"]
mod starting;
#[path = "e2e/stopping.rs"]
mod stopping;
#[path = "e2e/tally.rs"]
mod tally;
#[path = "e2e/terminal.rs"]
mod terminal;
#[path = "e2e/timeline.rs"]
mod timeline;
#[path = "e2e/watching.rs"]
mod watching;
