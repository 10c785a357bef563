//! `tally DIR`: counts files, lines and bytes of a directory tree, one worker per directory.
//!
//! Each worker counts the files of its own directory, launches a child for each sub-directory, saves what it has and parks: it
//! has no process while its children work. It is woken with their answers, maybe in several goes, and answers with the sum.
//! Between workers an answer is one line of JSON, so that any file name survives; the last answer is text for people.
//! Outside of Roost it starts itself under `roost run`, with the budget that it needs. The same argv is started for every wake.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use roost::plain::{self, Woken};
use roost::proto::bytes::Bytes;
use roost::proto::message::deliver::ItemKind;
use roost::proto::message::launch::{Allowance, Launch, Task};
use roost::proto::message::result::WorkerResult;
use roost::proto::outcome::Outcome;
use roost::proto::rpc::ErrorKind;
use roost::{Config, Connection};
use serde::{Deserialize, Serialize};

#[path = "tally_walk.rs"]
mod walk;
use walk::Totals;

/// The most tasks of one launch.
const TASKS_MAX: usize = 20;
/// The depth that a tree of workers has room for without being asked.
const DEPTH_DEFAULT: u32 = 4_096;
const USAGE: &str = "usage: tally DIR   (prints files, lines, bytes and the largest file of the tree below DIR)";

type Failed = Box<dyn std::error::Error>;

/// What survives parking.
#[derive(Serialize, Deserialize)]
struct Saved {
    totals: Totals,
    /// Children that have not answered yet.
    outstanding: u64,
    /// Children launched so far: the next request's id, the same if this process is started again.
    launched: usize,
    /// Directories without a child yet, and how many are below each.
    todo: Vec<(Bytes, u64)>,
}

struct Job {
    directory: Bytes,
    /// Launched by another tally, which reads our answer.
    is_child: bool,
}

fn main() -> ExitCode {
    match arguments().and_then(|job| tally(&job)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "tally: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Job, Failed> {
    let mut words: Vec<OsString> = env::args_os().skip(1).collect();
    if let [only] = words.as_slice()
        && (only == "--help" || only == "-h")
    {
        return Err(USAGE.into());
    }
    let is_child = words.len() > 1 && words[0] == "--child";
    words.drain(..usize::from(is_child));
    // A single word is the directory, whatever it begins with.
    words.drain(..usize::from(words.len() > 1 && words[0] == "--"));
    match words.as_slice() {
        [directory] if !directory.is_empty() => Ok(Job { directory: directory.as_os_str().into(), is_child }),
        _ => Err(USAGE.into()),
    }
}

fn tally(job: &Job) -> Result<(), Failed> {
    if env::var_os("ROOST_WORKER").is_none_or(|worker| worker.is_empty()) {
        return under_roost(job);
    }
    match plain::woken()? {
        None => begin(job),
        Some(woken) => go_on(job, woken),
    }
}

/// Becomes `roost run`, which launches us again as a worker.
fn under_roost(job: &Job) -> Result<(), Failed> {
    let (below, levels) = walk::directories_below(&job.directory, true)?;
    let own = env::current_exe()?;
    // cargo puts examples into a directory beside the programs.
    let built: Option<PathBuf> = own.parent().and_then(|examples| Some(examples.parent()?.join("roost"))).filter(|path| path.is_file());
    let roost = env::var_os("ROOST").or(built.map(Into::into)).unwrap_or_else(|| "roost".into());
    let mut command = Command::new(&roost);
    command.arg("run").arg("--budget").arg((below + 1).to_string());
    if levels >= DEPTH_DEFAULT {
        command.arg("--depth").arg((levels + 1).to_string());
    }
    command.arg("--").arg(own).arg("--").arg(job.directory.as_os_str());
    let error = command.exec();
    Err(format!("cannot start {}: {error}", roost.display()).into())
}

/// The first process of a worker.
fn begin(job: &Job) -> Result<(), Failed> {
    let (totals, subdirectories) = match walk::scan(&job.directory, !job.is_child) {
        // Removed since our lead has seen it.
        Err(error) if job.is_child && error.is_gone() => return answer(job, &Totals::default()),
        scanned => scanned?,
    };
    if subdirectories.is_empty() {
        return answer(job, &totals);
    }
    let mut connection = Connection::dial(Config::from_env()?)?;
    let budget = connection.welcome().and_then(|welcome| welcome.budget_remaining);
    let todo = match (subdirectories.as_slice(), budget) {
        // Our lead has counted what is below us: all but one of it is below our only sub-directory.
        ([only], Some(counted @ 1..)) if job.is_child => vec![(only.clone(), counted - 1)],
        (all, _) => all
            .iter()
            .map(|path| Ok((path.clone(), walk::directories_below(path, false)?.0)))
            .collect::<Result<Vec<_>, walk::Unreadable>>()?,
    };
    let needed: u64 = todo.iter().map(|(_, below)| below + 1).sum();
    if let Some(budget) = budget.filter(|budget| *budget < needed) {
        let advice = if job.is_child {
            "some have come since they were counted; start tally again when nobody makes directories there".to_owned()
        } else {
            format!("start tally outside of Roost, or under `roost run --budget {}`", needed + 1)
        };
        let directory = job.directory.as_os_str().display();
        return Err(format!("{directory} has {needed} directories below it, and there is budget for {budget} workers; {advice}").into());
    }
    launch_and_park(&mut connection, Saved { totals, outstanding: 0, launched: 0, todo })
}

/// A later process: some children have answered.
fn go_on(job: &Job, woken: Woken) -> Result<(), Failed> {
    let mut saved: Saved = serde_json::from_slice(&woken.context)?;
    for item in woken.wake.items {
        let ItemKind::Completion { result } = item.what else { continue };
        saved.totals.add(totals_of(&result)?);
        saved.outstanding = saved.outstanding.saturating_sub(1);
    }
    if saved.outstanding == 0 && saved.todo.is_empty() {
        return answer(job, &saved.totals);
    }
    if saved.outstanding > 0 && woken.wake.active_children == 0 {
        return Err(format!("{} children were stopped before they answered", saved.outstanding).into());
    }
    launch_and_park(&mut Connection::dial(Config::from_env()?)?, saved)
}

fn totals_of(result: &WorkerResult) -> Result<Totals, Failed> {
    let name = &result.end.name;
    if result.end.outcome != Outcome::Completed {
        return Err(format!("child {name} {}; see `roost logs {name} --stderr`", result.end.outcome).into());
    }
    let answer = roost::open_answer(result)?;
    serde_json::from_reader(answer).map_err(|error| format!("the answer of child {name} cannot be read: {error}").into())
}

/// Launches what there is room for. Does not return when all went well: the context is saved and this process ends.
fn launch_and_park(connection: &mut Connection, mut saved: Saved) -> Result<(), Failed> {
    let own = env::current_exe()?;
    let worker = env::var("ROOST_WORKER")?;
    while !saved.todo.is_empty() {
        let batch = saved.todo.len().min(TASKS_MAX);
        let launch = Launch {
            request_id: format!("tally-{worker}-{}", saved.launched),
            tasks: saved.todo[..batch].iter().map(|(path, below)| child(own.as_os_str(), path, *below)).collect(),
            submitter: roost::submitter()?,
            foreground: false,
            attended: false,
            generation: None,
        };
        match connection.launch(&launch) {
            Ok(_) => {}
            // Enough unread answers are waiting for us: park, read them, launch the rest then.
            Err(error) if error.refusal() == Some(ErrorKind::Limit) && saved.outstanding > 0 => break,
            Err(error) => return Err(error.into()),
        }
        saved.todo.drain(..batch);
        saved.launched += batch;
        saved.outstanding += batch as u64;
    }
    match plain::park(connection, &serde_json::to_vec(&saved)?)? {}
}

fn child(own: &OsStr, directory: &Bytes, below: u64) -> Task {
    let argv = [own, OsStr::new("--child"), OsStr::new("--"), directory.as_os_str()];
    Task { max_subagents_allowed: Allowance::Exactly(below), ..roost::task(argv) }
}

fn answer(job: &Job, totals: &Totals) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    if job.is_child {
        serde_json::to_writer(&mut out, totals)?;
        return Ok(out.flush()?);
    }
    write!(out, "files {}\nlines {}\nbytes {}\nlargest", totals.files, totals.lines, totals.bytes)?;
    if let Some(largest) = &totals.largest {
        out.write_all(b" ")?;
        out.write_all(&largest.path.0)?;
    }
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
