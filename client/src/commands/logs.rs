//! `roost logs`: what a worker has written, all its processes in order; `-f` follows with inotify and progress notifications.

mod transcript;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use clap::Args;
use roost::proto::message::status::{Status, WorkerState, WorkerStatus};
use roost::proto::rpc::ErrorKind;
use roost::{Connection, Error, Watcher};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify;

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape};
use crate::setup::Setup;

pub use transcript::lines as transcript_lines;

/// Print what a worker has written so far
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost logs build\n  roost logs build -f --stderr\n  roost logs reviewer --transcript")]
pub struct LogsArgs {
    /// Whose; for a transcript also the id of an execution (x12)
    #[arg(value_name = "NAME", add = candidates::workers())]
    name: String,
    /// Go on until the worker has ended
    #[arg(short, long)]
    follow: bool,
    /// Its standard error instead of its standard output
    #[arg(long)]
    stderr: bool,
    /// What went into its last execution and came out of it instead
    #[arg(long, conflicts_with_all = ["follow", "stderr"])]
    transcript: bool,
    /// The transcript as it is, JSON lines with all control characters
    #[arg(long, requires = "transcript")]
    raw: bool,
}

impl LogsArgs {
    /// Prints, and follows.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        if out.json && !self.transcript {
            return Err(Failure::usage("logs are bytes and no JSON", Some("`roost status NAME --json` names the files")));
        }
        let mut connection = if self.follow { setup.in_tree()? } else { setup.looking()? };
        let tree = if self.follow { None } else { setup.tree };
        if tree.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let request = Status { tree, name: Some(self.name.clone()), after: None };
        if self.transcript {
            self.transcript(&mut connection, &request, out)?;
            return Ok(Exit::Ok);
        }
        if !self.follow {
            let worker = self.look(&mut connection, &request)?;
            let mut log = Log::new(None);
            log.add(self.paths(&worker));
            log.print(out)?;
            return Ok(Exit::Ok);
        }
        self.follow(connection, &request, out)?;
        Ok(Exit::Ok)
    }

    fn transcript(&self, connection: &mut Connection, request: &Status, out: &mut Out) -> Result<(), Failure> {
        let execution = match (self.look(connection, request), self.name.parse()) {
            (Ok(worker), _) => worker.execution,
            // No worker has that name: it is an execution.
            (Err(Failure::Client(error)), Ok(execution)) if error.refusal() == Some(ErrorKind::UnknownWorker) => execution,
            (Err(failure), _) => return Err(failure),
        };
        let path = connection.config().paths.transcript(execution);
        transcript::print(&path, self.raw || out.json, out)
    }

    fn follow(&self, mut connection: Connection, request: &Status, out: &mut Out) -> Result<(), Failure> {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
        let events = events.map_err(|error| Error::io("cannot follow files")(error.into()))?;
        // First the watch, then the look: no change falls between the two.
        let mut watcher = Watcher::new(connection.config().clone())?;
        connection.start_no_more();
        let mut log = Log::new(Some(events));
        loop {
            let worker = self.look(&mut connection, request)?;
            log.add(self.paths(&worker));
            log.print(out)?;
            if worker.state == WorkerState::Ended {
                return Ok(());
            }
            while !log.wait(&mut watcher)? {
                log.print(out)?;
            }
        }
    }

    fn look(&self, connection: &mut Connection, request: &Status) -> Result<WorkerStatus, Failure> {
        let workers = connection.status(request)?.workers;
        let worker = workers.into_iter().find(|worker| worker.name.to_lowercase() == self.name.to_lowercase());
        worker.ok_or_else(|| Error::Protocol { method: "status", message: "the worker that was asked for is missing".into() }.into())
    }

    fn paths<'a>(&self, worker: &'a WorkerStatus) -> &'a [String] {
        if self.stderr { &worker.stderr_paths } else { &worker.stdout_paths }
    }
}

/// The files of a worker, one after the other. An older one is read to its end before the next: its process is gone by then.
struct Log {
    events: Option<OwnedFd>,
    files: BTreeMap<usize, File>,
    paths: Vec<String>,
    current: usize,
}

impl Log {
    fn new(events: Option<OwnedFd>) -> Self {
        Self { events, files: BTreeMap::new(), paths: Vec::new(), current: 0 }
    }

    fn add(&mut self, paths: &[String]) {
        self.paths.extend(paths.iter().skip(self.paths.len()).cloned());
    }

    fn print(&mut self, out: &mut Out) -> Result<(), Failure> {
        while let Some(path) = self.paths.get(self.current) {
            let what = || path.clone();
            if !self.files.contains_key(&self.current) {
                let file = match File::open(path) {
                    Ok(file) => file,
                    // Its process is being started, or could not be: the tree's next change tells.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        if self.current + 1 == self.paths.len() {
                            break;
                        }
                        self.current += 1;
                        continue;
                    }
                    Err(source) => return Err(Failure::Input { what: what(), source }),
                };
                if let Some(events) = &self.events {
                    let added = inotify::add_watch(events, path.as_str(), inotify::WatchFlags::MODIFY);
                    added.map_err(|error| Error::io(format!("cannot follow {path}"))(error.into()))?;
                }
                self.files.insert(self.current, file);
            }
            if let Some(file) = self.files.get_mut(&self.current) {
                copy(file, out, &what())?;
            }
            // The newest stays open: it may grow.
            if self.current + 1 == self.paths.len() {
                break;
            }
            self.files.remove(&self.current);
            self.current += 1;
        }
        out.flush()
    }

    /// Blocks until a file or the tree has changed; true for the tree.
    fn wait(&self, watcher: &mut Watcher) -> Result<bool, Failure> {
        if watcher.arrived()?.is_some() {
            return Ok(true);
        }
        let (Some(events), Some(socket)) = (&self.events, watcher.descriptor()) else { return Ok(true) };
        let mut ready = [PollFd::new(events, PollFlags::IN), PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        match rustix::event::poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot follow")(error.into()).into()),
        }
        let [file_changed, tree_changed] = ready.map(|one| !one.revents().is_empty());
        if file_changed {
            drain(events);
        }
        if tree_changed {
            // A daemon sends its lines whole: this does not block for long. All that came with it is one change.
            watcher.next_progress()?;
            watcher.arrived()?;
        }
        Ok(tree_changed)
    }
}

/// What changed does not matter, only that it did.
fn drain(events: &OwnedFd) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
}

/// Bytes for a pipe, harmless text for a terminal.
fn copy(file: &mut File, out: &mut Out, what: &str) -> Result<(), Failure> {
    if !out.is_terminal() {
        return out.copy(file, what);
    }
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|source: io::Error| Failure::Input { what: what.into(), source })?;
    out.bytes(escape(&String::from_utf8_lossy(&bytes)).as_bytes())
}
