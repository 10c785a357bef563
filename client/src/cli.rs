//! The command line: global options and the list of verbs. What a verb takes is in its own file.

use std::ffi::OsString;
use std::str::FromStr;

use clap::builder::OsStringValueParser;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use roost::Places;
use roost::proto::id::TreeId;

use crate::candidates;
use crate::commands;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Out};
use crate::setup::Setup;

/// Runs trees of nested worker processes under one cap, one queue and one budget.
#[derive(Debug, Parser)]
#[command(
    name = "roost",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  roost run --cap 4 -- ./job.sh\n\nExit codes: docs/exit-codes.md"
)]
pub struct Cli {
    /// The daemon's socket [env: ROOST_SOCKET]
    #[arg(long, global = true, value_name = "PATH", value_parser = OsStringValueParser::new())]
    socket: Option<OsString>,
    /// The daemon's state directory [env: ROOST_STATE_DIR]
    #[arg(long, global = true, value_name = "DIR", value_parser = OsStringValueParser::new())]
    state_dir: Option<OsString>,
    /// Act in this open tree, as its root
    #[arg(long, global = true, value_name = "ID", num_args = 0..=1, default_missing_value = "", add = candidates::trees())]
    tree: Option<TreeWord>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Do not start a daemon when none is running [env: ROOST_NO_START]
    #[arg(long, global = true)]
    no_start: bool,
    #[command(subcommand)]
    verb: Verb,
}

/// What stands after `--tree`. Without an id it is a wish of `roost usage`, and an error of everything else.
#[derive(Debug, Clone, Copy)]
enum TreeWord {
    Drawn,
    Id(TreeId),
}

impl FromStr for TreeWord {
    type Err = <TreeId as FromStr>::Err;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self::Drawn) } else { text.parse().map(Self::Id) }
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(commands::run::RunArgs),
    Open(commands::open::OpenArgs),
    Spawn(commands::spawn::SpawnArgs),
    Wait(commands::wait::WaitArgs),
    Result(commands::result::ResultArgs),
    Message(commands::message::MessageArgs),
    TellLead(commands::tell_lead::TellLeadArgs),
    Inbox(commands::inbox::InboxArgs),
    Park(commands::park::ParkArgs),
    Status(commands::status::StatusArgs),
    Watch(commands::watch::WatchArgs),
    Logs(commands::logs::LogsArgs),
    Usage(commands::usage::UsageArgs),
    Events(commands::events::EventsArgs),
    Timeline(commands::timeline::TimelineArgs),
    Stop(commands::stop::StopArgs),
    Interrupt(commands::interrupt::InterruptArgs),
    Cap(commands::cap::CapArgs),
    Pause(commands::pause::PauseArgs),
    Resume(commands::pause::ResumeArgs),
    Close(commands::close::CloseArgs),
    Daemon(commands::daemon::DaemonArgs),
    Service(commands::service::ServiceArgs),
    Metrics(commands::metrics::MetricsArgs),
    Export(commands::export::ExportArgs),
    Gc(commands::gc::GcArgs),
    Config(commands::config::ConfigArgs),
    Doctor(commands::doctor::DoctorArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// The whole command: its exit code is all that is left to do for `main`.
pub fn run(arguments: Vec<OsString>) -> Exit {
    if let Some(exit) = candidates::answer(&arguments) {
        return exit;
    }
    let json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let mut out = Out::new(json);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, &mut out),
    };
    // The parser has the last word: `--json` may have been the value of something.
    out.json = cli.json;
    let done = cli.verb(&mut out).and_then(|exit| out.flush().map(|()| exit));
    match done {
        Ok(exit) => exit,
        Err(failure) => {
            output::report(&failure, &mut out);
            failure.exit()
        }
    }
}

impl Cli {
    fn verb(self, out: &mut Out) -> Result<Exit, Failure> {
        let places = Places { socket: self.socket, state_dir: self.state_dir };
        let (tree, drawn) = match self.tree {
            Some(TreeWord::Id(tree)) => (Some(tree), false),
            Some(TreeWord::Drawn) if !matches!(self.verb, Verb::Usage(_)) => {
                return Err(Failure::usage("--tree needs the ID of a tree", Some("`roost status` outside of a tree lists them")));
            }
            Some(TreeWord::Drawn) => (None, true),
            None => (None, false),
        };
        let setup = Setup { places, tree, no_start: self.no_start };
        match self.verb {
            Verb::Run(args) => args.run(&setup, out),
            Verb::Open(args) => args.run(&setup, out),
            Verb::Spawn(args) => args.run(&setup, out),
            Verb::Wait(args) => args.run(&setup, out),
            Verb::Result(args) => args.run(&setup, out),
            Verb::Message(args) => args.run(&setup, out),
            Verb::TellLead(args) => args.run(&setup, out),
            Verb::Inbox(args) => args.run(&setup, out),
            Verb::Park(args) => args.run(&setup),
            Verb::Status(args) => args.run(&setup, out),
            Verb::Watch(args) => args.run(&setup, out),
            Verb::Logs(args) => args.run(&setup, out),
            Verb::Usage(args) => args.run(&setup, drawn, out),
            Verb::Events(args) => args.run(&setup, out),
            Verb::Timeline(args) => args.run(&setup, out),
            Verb::Stop(args) => args.run(&setup, out),
            Verb::Interrupt(args) => args.run(&setup, out),
            Verb::Cap(args) => args.run(&setup, out),
            Verb::Pause(args) => args.run(&setup, out),
            Verb::Resume(args) => args.run(&setup, out),
            Verb::Close(args) => args.run(&setup, out),
            Verb::Daemon(args) => args.run(&setup, out),
            Verb::Service(args) => args.run(&setup, out),
            Verb::Metrics(args) => args.run(&setup, out),
            Verb::Export(args) => args.run(&setup, out),
            Verb::Gc(args) => args.run(&setup, out),
            Verb::Config(args) => args.run(out),
            Verb::Doctor(args) => args.run(&setup, out),
            Verb::Completions(args) => args.run(out),
            Verb::Man(args) => args.run(out),
        }
    }
}

/// Help and version are data; everything else is an error of usage.
fn not_parsed(error: &clap::Error, out: &mut Out) -> Exit {
    let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if wanted {
        let shown = error.render();
        let text = if out.colour() { shown.ansi().to_string() } else { shown.to_string() };
        return match out.bytes(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Exit::Ok,
            Err(failure) => failure.exit(),
        };
    }
    if out.json {
        let failure = Failure::usage(error.render().to_string().trim_end(), None);
        output::report(&failure, out);
        return Exit::Usage;
    }
    // Nobody reads standard error: the exit code still tells.
    error.print().ok();
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_verb_has_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        let mut open: Vec<_> = command.get_subcommands().cloned().collect();
        while let Some(verb) = open.pop() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", verb.get_name());
            // What is not an example is broken to the width of the terminal, and nowhere else.
            for line in help.lines().filter(|line| !line.is_empty() && !line.starts_with("  ")) {
                assert!(line.ends_with(['.', ':', ')']) || line.starts_with("Exit codes"), "{}: {line}", verb.get_name());
            }
            open.extend(verb.get_subcommands().cloned());
        }
    }

    #[test]
    fn everything_after_the_program_is_the_programs() {
        for line in ["roost run -- sh -c true --cap 3", "roost run sh -c true --cap 3"] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let Verb::Run(args) = cli.verb else { unreachable!() };
            assert_eq!(args.command(), ["sh", "-c", "true", "--cap", "3"]);
        }
        assert!(Cli::try_parse_from(["roost", "run", "--capp", "3", "--", "true"]).is_err());
    }
}
