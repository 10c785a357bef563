//! `roost cap`: reads or sets how many workers may live at once.

use clap::Args;
use roost::proto::message::tree::Cap;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;
use crate::values;

/// Show or set the tree's cap
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost cap\n  roost cap 2")]
pub struct CapArgs {
    /// The new cap, 1 to 100000
    #[arg(value_name = "N", value_parser = values::cap, allow_negative_numbers = true)]
    cap: Option<u32>,
}

impl CapArgs {
    /// Reads or sets, and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let reply = setup.in_tree()?.cap(&Cap { cap: self.cap })?;
        if out.json {
            out.json(&reply)?;
        } else {
            out.line(&format!("cap {}  live {}  queued {}", reply.cap, reply.live, reply.queued))?;
        }
        Ok(Exit::Ok)
    }
}
