//! `roost interrupt`: everything of the tree at once.

use clap::Args;
use roost::proto::message::stop::Interrupt;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;

/// Stop everything of the tree that runs, is queued or is parked
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost interrupt --tree t123")]
pub struct InterruptArgs {}

impl InterruptArgs {
    /// Interrupts and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let reply = setup.in_tree()?.interrupt(&Interrupt { request_id: Some(roost::request_id()?), no_wait: false })?;
        if out.json {
            out.json(&reply)?;
        } else if reply.stopped == 0 {
            out.line("nothing to do")?;
        } else {
            out.line(&format!("{} stopped", reply.stopped))?;
        }
        Ok(Exit::Ok)
    }
}
