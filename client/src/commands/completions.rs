//! `roost completions`: a script by which a shell asks this program what fits behind the cursor.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;

/// Print the completion script of a shell: verbs, flags, and names of workers as they are at that moment
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost completions bash > ~/.local/share/bash-completion/completions/roost\n  \
    roost completions zsh > ~/.zfunc/_roost   # a folder of fpath, before compinit\n  \
    roost completions fish > ~/.config/fish/completions/roost.fish\n\n\
    The script asks the `roost` that is on PATH then; no daemon is started by it.")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

impl CompletionsArgs {
    /// Prints.
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        // Into memory first: standard output may break.
        let mut script = Vec::new();
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).ok_or_else(|| Failure::usage(format!("no script for {}", self.shell), None))?;
        shell.write_registration(candidates::VARIABLE, "roost", "roost", "roost", &mut script)?;
        out.bytes(&script)?;
        Ok(Exit::Ok)
    }
}
