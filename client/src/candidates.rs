//! What a shell offers behind the cursor beside flags: the workers and trees of a daemon that runs. It says nothing and starts nothing.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::CommandFactory;
use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use roost::proto::message::status::{Status, StatusReply};
use roost::{Config, Connection, Places, Start};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::note;
use crate::values;

/// Where it is set the shell asks: its name is the value, the words are behind `--`.
pub const VARIABLE: &str = "ROOST_COMPLETE";

/// A person who waits for a key has no patience.
const WITHIN: Duration = Duration::from_secs(1);

/// Answers a shell, if it is one that asks.
pub fn answer(arguments: &[OsString]) -> Option<Exit> {
    std::env::var_os(VARIABLE)?;
    let done = CompleteEnv::with_factory(Cli::command).var(VARIABLE).try_complete(arguments, std::env::current_dir().ok().as_deref());
    match done {
        Ok(true) => Some(Exit::Ok),
        Ok(false) => None,
        Err(error) => {
            note(&format!("roost: {error}"));
            Some(Exit::Usage)
        }
    }
}

/// Names of workers.
pub fn workers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let Some(known) = look() else { return Vec::new() };
        let about = |worker: &roost::proto::message::status::WorkerStatus| {
            worker.outcome.as_ref().map_or_else(|| values::wire_word(&worker.state), ToString::to_string)
        };
        known.workers.iter().filter_map(|worker| candidate(&worker.name, &about(worker))).collect()
    })
}

/// Trees that are open.
pub fn trees() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let known = look().map(|known| known.trees).unwrap_or_default();
        let open = known.iter().filter(|tree| tree.closed_at_ms.is_none());
        open.filter_map(|tree| candidate(&tree.progress.tree.to_string(), tree.key.as_deref().unwrap_or_default())).collect()
    })
}

/// Only what is one harmless word in every shell: the name comes from somebody else, and the shell puts it into its line as it is.
fn candidate(word: &str, about: &str) -> Option<CompletionCandidate> {
    let is_plain = !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || "._-+@%/".contains(c));
    let about = about.chars().filter(|c| !c.is_control()).take(60).collect::<String>();
    is_plain.then(|| CompletionCandidate::new(word).help(Some(about.into())))
}

/// What the daemon knows that the line so far is about; the environment's where that says nothing.
fn look() -> Option<StatusReply> {
    let line: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let places = Places { socket: value_of(&line, "--socket"), state_dir: value_of(&line, "--state-dir") };
    let config = Config::with_places(places).ok()?;
    // A connection would have systemd start one that does not run.
    let pid = roost::lock_pid(&config.paths)?;
    if !Path::new("/proc").join(pid.to_string()).exists() {
        return None;
    }
    let tree = value_of(&line, "--tree").and_then(|tree| tree.to_str()?.parse().ok());
    let config = if tree.is_some() { config.without_identity() } else { config };
    let config = Config { start: Start::Never, by_unit: false, answer_within: WITHIN, back_within: WITHIN, ..config };
    let begun = Instant::now();
    let mut connection = Connection::dial(config).ok()?;
    let mut known = connection.status(&Status { tree, ..Status::default() }).ok()?;
    while let Some(after) = known.next.take().filter(|_| begun.elapsed() < WITHIN) {
        let Ok(page) = connection.status(&Status { tree, after: Some(after), ..Status::default() }) else { break };
        known.workers.extend(page.workers);
        known.next = page.next.filter(|next| *next != after);
    }
    Some(known)
}

/// Some shells make three words of `--flag=value`.
fn value_of(line: &[OsString], flag: &str) -> Option<OsString> {
    let joined = |word: &OsStr| Some(OsString::from(word.to_str()?.strip_prefix(flag)?.strip_prefix('=')?));
    let at = line.iter().position(|word| word == flag || joined(word).is_some())?;
    joined(&line[at]).or_else(|| line[at + 1..].iter().find(|word| *word != "=").cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_plain_word_is_not_offered() {
        for good in ["w1", "a.b_c-d", "größe"] {
            assert!(candidate(good, "running").is_some(), "{good}");
        }
        for bad in ["$(reboot)", "a b", "a;b", "a\nb", "`a`", "-a", "a'b", "a*", "~", "a\u{1b}", "a\u{b}b"] {
            assert!(candidate(bad, "").is_none(), "{bad}");
        }
    }

    #[test]
    fn a_flag_of_the_line_is_found_in_each_of_its_forms() {
        let of = |line: &str| value_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), "--tree");
        for line in ["roost --tree t7 logs", "roost logs --tree=t7", "roost --tree = t7 logs"] {
            assert_eq!(of(line), Some("t7".into()), "{line}");
        }
        assert_eq!([of("roost logs"), of("roost --trees t1"), of("roost --tree")], [None, None, None]);
    }
}
