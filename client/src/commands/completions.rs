//! `roost completions`: a script for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost completions bash > ~/.local/share/bash-completion/completions/roost")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints.
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        // Into memory first: the generator panics on a pipe that breaks.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "roost", &mut script);
        out.bytes(&script)?;
        Ok(Exit::Ok)
    }
}
