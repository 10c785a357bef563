//! A private daemon: directories, programs, environment, and an end that leaves nothing of it behind, after a panic too.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::Cmd;
use super::fifo::Fifo;
use super::process::{self, Process, Watched};
use super::sampler::{Sampler, at_one_moment};
use super::wire::Wire;
use super::{not_tested, until};

/// What a home in memory may come to need.
const ROOM_BYTES: u64 = 1 << 30;

/// A directory of one test, with the daemon that lives in it.
pub struct Home {
    directory: TempDir,
    programs: PathBuf,
}

/// The two processes of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonPids {
    /// The supervisor.
    pub supervisor: u32,
    /// The broker.
    pub broker: u32,
}

impl Home {
    /// A fresh one. Its path is short, because that of a socket must be; no daemon runs yet.
    pub fn new() -> Self {
        Self::within(Path::new("/tmp"))
    }

    /// A fresh one in memory where there is room for it, for tests of thousands of workers: they are about processes and
    /// counts, and on a busy disk they would measure the time of a sync.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let has_room = rustix::fs::statvfs(memory).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= ROOM_BYTES);
        Self::within(if has_room { memory } else { Path::new("/tmp") })
    }

    /// A fresh one in this directory, whose path must not be long.
    pub fn within(parent: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("rt-").tempdir_in(parent).expect("a directory can be made there");
        let home = Self { directory, programs: programs() };
        fs::create_dir(home.dir().join("home")).expect("a directory");
        home
    }

    /// The test's own directory; workers know it as `$F`.
    pub fn dir(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// The daemon's state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.dir().join("s")
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.state_dir().join("roost.sock")
    }

    /// A program that was built along with this test.
    #[track_caller]
    pub fn program(&self, name: &str) -> PathBuf {
        let path = self.programs.join(name);
        assert!(path.is_file(), "{} is missing: cargo build -p roostd -p roost --bins --examples", path.display());
        path
    }

    /// A file of the repository's examples.
    pub fn example(&self, name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).canonicalize().expect("an example")
    }

    /// Any program in the surroundings of this home, with `roost` and `roostd` on its `PATH`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Cmd {
        self.program("roostd");
        self.program("roost");
        let mut path = self.programs.clone().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()));
        Cmd::new(program)
            .env("PATH", path)
            .env("HOME", self.file("home"))
            .env("F", self.dir())
            .env("ROOST_STATE_DIR", self.state_dir())
            .cwd(self.dir())
    }

    /// `roost` with these arguments.
    pub fn roost<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.command(self.program("roost")).args(args)
    }

    /// A shell script.
    pub fn sh(&self, script: &str) -> Cmd {
        self.command("sh").args(["-c", script])
    }

    /// A shell script in a file, for a worker to run again and again.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("a script");
        path
    }

    /// A named pipe in the test's directory.
    pub fn fifo(&self, name: &str) -> Fifo {
        Fifo::new(&self.file(name))
    }

    /// What is in a file of the test's directory; nothing when there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// What the daemon has logged; nothing when there was none.
    pub fn log(&self) -> String {
        fs::read_to_string(self.state_dir().join("daemon.log")).unwrap_or_default()
    }

    /// Whether there is Python for this; says so where there is none.
    pub fn has_python(&self, what: &str) -> bool {
        let has_it = self.sh("command -v python3").run().code() == 0;
        if !has_it {
            not_tested(&format!("{what}: no python3"));
        }
        has_it
    }

    /// Starts the daemon by hand, with these flags.
    #[track_caller]
    pub fn start_daemon(&self, flags: &[&str]) -> DaemonPids {
        self.command(self.program("roostd")).arg("--detach").args(flags).run().ok();
        self.daemon()
    }

    /// What `roost daemon status --json` says of the running daemon.
    #[track_caller]
    pub fn daemon_status(&self) -> Value {
        self.roost(["daemon", "status", "--json"]).run().ok().json()
    }

    /// Waits until the daemon has so many connections, that of the question included. Nothing tells of one that has ended: it is
    /// asked again, over one connection, which is returned.
    #[track_caller]
    pub fn until_connections(&self, count: u64) -> Wire {
        let mut wire = self.wire();
        until(&format!("{count} connections"), || {
            wire.call("daemon.status", &json!({})).expect("an operator may ask")["connections"] == count
        });
        wire
    }

    /// The running daemon's processes, as it reports them.
    #[track_caller]
    pub fn daemon(&self) -> DaemonPids {
        let status = self.daemon_status();
        let pid = |name: &str| u32::try_from(status[name].as_u64().expect("a pid")).expect("a pid");
        DaemonPids { supervisor: pid("supervisor_pid"), broker: pid("broker_pid") }
    }

    /// Ends the broker at once, as `kill -9` does. Its successor serves when this is answered again.
    #[track_caller]
    pub fn kill_broker(&self) {
        Watched::new(self.daemon().broker).kill();
    }

    /// Ends the supervisor at once, and waits until the broker has followed.
    #[track_caller]
    pub fn kill_supervisor(&self) {
        let pids = self.daemon();
        let broker = Watched::new(pids.broker);
        Watched::new(pids.supervisor).kill();
        broker.await_end();
    }

    /// Ends both at once.
    #[track_caller]
    pub fn kill_daemon(&self) {
        let pids = self.daemon();
        let (supervisor, broker) = (Watched::new(pids.supervisor), Watched::new(pids.broker));
        supervisor.signal(Signal::KILL);
        broker.kill();
        supervisor.await_end();
    }

    /// All `roostd` processes of this home: supervisors, then brokers.
    pub fn daemons(&self) -> (Vec<Process>, Vec<Process>) {
        let ours = process::all().into_iter().filter(Process::is_alive).filter(|process| self.owns(process));
        let roostd = ours.filter(|process| process.arguments().first().is_some_and(|program| program.ends_with(b"roostd")));
        roostd.partition(|process| process.arguments().get(1).is_none_or(|word| word != b"broker"))
    }

    /// The incarnations that live in this moment, with their processes.
    pub fn workers(&self) -> BTreeMap<String, Vec<Process>> {
        at_one_moment(&self.state_dir())
    }

    /// Begins to count living workers.
    pub fn sample(&self) -> Sampler {
        Sampler::start(&self.state_dir())
    }

    /// A connection to the running daemon that has said hello as an operator.
    #[track_caller]
    pub fn wire(&self) -> Wire {
        let mut wire = Wire::connect(&self.socket());
        wire.hello(None).expect("an operator is welcome");
        wire
    }

    /// Zombies whose parent is the daemon.
    #[track_caller]
    pub fn zombies(&self) -> usize {
        let pids = self.daemon();
        let parents = [pids.supervisor, pids.broker];
        process::all().iter().filter(|process| process.state == 'Z' && parents.contains(&process.parent)).count()
    }

    /// How many descriptors supervisor and broker have open, with the one connection that asks.
    #[track_caller]
    pub fn descriptors(&self) -> (usize, usize) {
        let pids = self.daemon();
        let _asks = self.until_connections(1);
        let count = |pid: u32| process::find(pid).map_or(0, |process| process.descriptors().len());
        (count(pids.supervisor), count(pids.broker))
    }

    /// The most memory that supervisor and broker together can have had, in KiB: the sum of their peaks.
    #[track_caller]
    pub fn peak_kib(&self) -> u64 {
        let pids = self.daemon();
        [pids.supervisor, pids.broker].iter().map(|pid| process::find(*pid).expect("the daemon lives").peak_kib()).sum()
    }

    fn owns(&self, process: &Process) -> bool {
        let directory = self.dir().as_os_str().as_encoded_bytes();
        let names_it = |text: &Vec<u8>| text.windows(directory.len()).any(|part| part == directory);
        process.pid != std::process::id() && (process.arguments().iter().any(names_it) || process.environment().iter().any(names_it))
    }

    /// Ends what carries this home's directory in its environment or arguments, and nothing else.
    fn clean_up(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let left: Vec<Process> = process::all().into_iter().filter(Process::is_alive).filter(|process| self.owns(process)).collect();
            // The supervisor first: it would start its broker again.
            let (supervisors, others): (Vec<_>, Vec<_>) = left.iter().partition(|process| {
                let words = process.arguments();
                words.first().is_some_and(|program| program.ends_with(b"roostd")) && words.get(1).is_none_or(|word| word != b"broker")
            });
            if (supervisors.is_empty() && others.is_empty()) || Instant::now() > until {
                return;
            }
            for process in supervisors.into_iter().chain(others) {
                if let Some(watched) = Watched::try_new(process.pid).filter(|watched| watched.process.began == process.began) {
                    watched.signal(Signal::KILL);
                    watched.ends_within(Duration::from_secs(2));
                }
            }
        }
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- end of daemon.log\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
        self.clean_up();
    }
}

/// The directory of the programs: tests are in `target/PROFILE/deps`.
fn programs() -> PathBuf {
    let own = std::env::current_exe().expect("our own program");
    own.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_owned()
}
