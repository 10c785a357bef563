//! `roost metrics`: what is counted of the daemon's work.

use clap::Args;
use roost::{Config, Connection, Start};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;

/// Print what is counted of the daemon's work, as OpenMetrics text
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost metrics\n  roost metrics > /var/lib/node_exporter/roost.prom")]
pub struct MetricsArgs {}

impl MetricsArgs {
    /// Reads and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        // Counters begin with a broker: one that was started for this has none.
        let config = Config { start: Start::Never, ..setup.config()?.without_identity() };
        let reply = Connection::dial(config)?.daemon_metrics()?;
        if out.json {
            out.json(&reply)?;
        } else {
            out.line(reply.text.trim_end())?;
        }
        Ok(Exit::Ok)
    }
}
