//! The command `roost`: parse, one call, print. Everything it knows of sockets is in the library of the same name.

mod candidates;
mod cli;
mod commands;
mod conf;
mod exit;
mod failure;
mod outline;
mod output;
mod settings;
mod setup;
mod tasks;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::run(std::env::args_os().collect()).code())
}
