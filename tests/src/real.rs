//! Real processes for tests: a private daemon in a directory of its own, `roost` commands with a deadline, events instead of
//! sleeps, and the kernel's view of what lives.
//!
//! Nothing here knows the daemon from the inside: it is met through its programs, its socket, its files and `/proc`.

mod agents;
mod cgroup;
mod command;
mod fifo;
mod home;
mod journal;
mod lead;
mod machine;
mod process;
mod replay;
mod sampler;
mod shim;
mod terminal;
mod tree;
mod user_manager;
mod wire;

pub use agents::{Agent, Agents, deaf, fake_agent, scripted, with_children};
pub use cgroup::CgroupDirectory;
pub use command::{Cmd, Done, Running};
pub use fifo::Fifo;
pub use home::{DaemonPids, Home};
pub use journal::{journal_file, recorded};
pub use lead::Lead;
pub use machine::{ProcessLimit, SmallDisk, is_root};
pub use process::{Process, Watched, all, find, pidfd};
pub use replay::{Names, Step, StepKind, Transcript, replay};
pub use sampler::{Sampler, Samples};
pub use shim::shim;
pub use terminal::Terminal;
pub use tree::{Tree, by_name, is_up, outcome_of};
pub use user_manager::UserManager;
pub use wire::{Wire, kind_of};

pub use roost_not_tested::not_tested;

use std::time::{Duration, Instant};

/// How long a test waits for what must happen. Long, because two cores may be busy with other tests: it is no measure.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Waits for what no descriptor tells of.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
