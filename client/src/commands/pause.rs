//! `roost pause` and `roost resume`: hold and release admissions.

use clap::Args;
use roost::proto::message::tree::Pause;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;

/// Start nothing new in the tree; what runs goes on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost pause --tree t123")]
pub struct PauseArgs {}

/// Go on starting what is queued
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost resume --tree t123")]
pub struct ResumeArgs {}

impl PauseArgs {
    /// Pauses.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        set(true, setup, out)
    }
}

impl ResumeArgs {
    /// Resumes.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        set(false, setup, out)
    }
}

fn set(paused: bool, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
    let reply = setup.in_tree()?.pause(&Pause { paused })?;
    if out.json {
        out.json(&reply)?;
    } else {
        out.line(if reply.paused { "paused" } else { "running" })?;
    }
    Ok(Exit::Ok)
}
