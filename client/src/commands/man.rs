//! `roost man`: the manual pages, made of the same words as the help.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use roost::Error;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;

/// Write the manual pages into a directory, one for each command
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost man ~/.local/share/man/man1 && man roost-run")]
pub struct ManArgs {
    /// Where; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl ManArgs {
    /// Writes.
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let directory = self.directory;
        fs::create_dir_all(&directory).map_err(Error::io(format!("cannot make {}", directory.display())))?;
        // `roost help VERB` shows what the page of the verb says.
        let command = Cli::command().disable_help_subcommand(true);
        clap_mangen::generate_to(command, &directory).map_err(Error::io(format!("cannot write into {}", directory.display())))?;
        if out.json {
            out.json(&serde_json::json!({"directory": directory}))?;
        }
        Ok(Exit::Ok)
    }
}
