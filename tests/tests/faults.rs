//! Faults of the machine and of the processes around the daemon: full disks, damaged files, no descriptors, no processes, stopped
//! processes, workers that misbehave. Each on a private daemon; waits are events, and what needs root says so where it is not.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "faults/clock.rs"]
mod clock;
#[path = "faults/damage.rs"]
mod damage;
#[path = "faults/descriptors.rs"]
mod descriptors;
#[path = "faults/every_call.rs"]
mod every_call;
#[path = "faults/forks.rs"]
mod forks;
#[path = "faults/log.rs"]
mod log;
#[path = "faults/quota.rs"]
mod quota;
#[path = "faults/snapshots.rs"]
mod snapshots;
#[path = "faults/space.rs"]
mod space;
#[path = "faults/space_at_start.rs"]
mod space_at_start;
#[path = "faults/stopped.rs"]
mod stopped;
#[path = "faults/workers.rs"]
mod workers;
