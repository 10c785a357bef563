//! `roost close`: the tree takes no launch any more.

use clap::Args;
use roost::proto::message::tree::Close;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;

/// Close the tree; its results stay readable
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost close --now")]
pub struct CloseArgs {
    /// Stop what is active first; without it active work is an error
    #[arg(long)]
    now: bool,
}

impl CloseArgs {
    /// Closes and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let reply = setup.in_tree()?.close(&Close { now: self.now })?;
        if out.json {
            out.json(&reply)?;
        } else if reply.stopped > 0 {
            out.line(&format!("closed, {} stopped", reply.stopped))?;
        } else {
            out.line("closed")?;
        }
        Ok(Exit::Ok)
    }
}
