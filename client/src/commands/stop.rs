//! `roost stop`: ends direct children and what descends from them.

use clap::Args;
use roost::proto::message::stop::{Stop, StopResult};

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;

/// Stop children and all that descends from them; one bad name, and nothing is touched
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost stop build test")]
pub struct StopArgs {
    /// Which children
    #[arg(value_name = "NAME", required = true, add = candidates::workers())]
    names: Vec<String>,
}

impl StopArgs {
    /// Stops and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let reply = setup.in_tree()?.stop(&Stop { request_id: Some(roost::request_id()?), names: self.names, no_wait: false })?;
        if out.json {
            out.json(&reply)?;
            return Ok(Exit::Ok);
        }
        for worker in &reply.workers {
            let result = match worker.result {
                StopResult::Stopped => "stopped",
                StopResult::AlreadySettled => "already settled",
            };
            out.line(&format!("{} {result}", escape_line(&worker.name)))?;
        }
        Ok(Exit::Ok)
    }
}
