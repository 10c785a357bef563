//! The real `roostd` supervisor with a scripted broker.
//!
//! The supervisor starts its broker by the name that it was started by itself, so a test starts it under the name of a script.
//! As `broker` the script becomes this test binary, which passes the link on to the test; otherwise it becomes `roostd`.
// Helpers of a test are tests too; clippy sees only the functions with the attribute.
#![allow(clippy::unwrap_used)]

use std::ffi::CString;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use roost_proto::id::{Epoch, ExecutionId, Incarnation};
use roost_proto::link::{
    ChildReport, Decoder, ExitStatus, LINK_VERSION, ProcessIdentity, Signal, SpawnOrder, Stdin, ToBroker, ToSupervisor, encode,
};
use roostd::identity;
use roostd::process::{signal, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const CONTROL: &str = "FAKE_BROKER_CONTROL";
const PATIENCE: Duration = Duration::from_secs(20);

/// Not a test of its own: what the script becomes.
#[test]
fn fake_broker() {
    let Ok(control) = std::env::var(CONTROL) else { return };
    let mut from_test = UnixStream::connect(&control).unwrap();
    let mut link = UnixStream::from(spawn::inherited(3).unwrap());
    let (mut to_link, mut to_test) = (link.try_clone().unwrap(), from_test.try_clone().unwrap());
    // The test hangs up: die as it says.
    std::thread::spawn(move || {
        std::io::copy(&mut from_test, &mut to_link).unwrap();
        let code = fs::read_to_string(format!("{control}.exit")).map_or(1, |text| text.trim().parse().unwrap());
        std::process::exit(code);
    });
    // The supervisor is gone: a broker exits.
    std::io::copy(&mut link, &mut to_test).unwrap();
    std::process::exit(0);
}

struct World {
    dir: tempfile::TempDir,
    control: UnixListener,
}

struct Broker {
    stream: UnixStream,
    decoder: Decoder,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let control = UnixListener::bind(dir.path().join("control")).unwrap();
        let world = Self { dir, control };
        let test = std::env::current_exe().unwrap();
        let control = world.path("control");
        world.write_script(&format!("{CONTROL}='{}' exec '{}' --exact fake_broker --nocapture", control.display(), test.display()));
        world
    }

    fn write_script(&self, broker: &str) {
        let roostd = env!("CARGO_BIN_EXE_roostd");
        let script = format!("#!/bin/bash\nif [ \"$1\" = broker ]; then {broker}; fi\nexec -a \"$0\" '{roostd}' \"$@\"\n");
        // By rename: the old script may be being read.
        fs::write(self.path("new"), script).unwrap();
        fs::set_permissions(self.path("new"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(self.path("new"), self.path("roostd")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn socket(&self) -> PathBuf {
        self.state().join("roost.sock")
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roostd"));
        command.arg0(self.path("roostd")).arg("--state-dir").arg(self.state()).args(flags);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"ROOST_")) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self) -> Child {
        let mut command = self.command(&[]);
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        command.stderr(log).spawn().unwrap()
    }

    /// The next broker, after the hellos.
    fn broker(&self) -> (Broker, Vec<ChildReport>) {
        wait_readable(&self.control, || fs::read_to_string(self.path("log")).unwrap_or_default());
        let (stream, _) = self.control.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut broker = Broker { stream, decoder: Decoder::default() };
        let ToBroker::Hello { version: LINK_VERSION, boot_id, children, .. } = broker.next() else { panic!("no hello") };
        assert_eq!(boot_id, identity::boot_id().unwrap());
        broker.send(&ToSupervisor::Hello { version: LINK_VERSION });
        (broker, children)
    }

    fn order(&self, execution: u64, script: &str) -> SpawnOrder {
        let file = |suffix: &str| self.state().join("executions").join(format!("x{execution}-1.{suffix}")).as_os_str().as_bytes().to_vec();
        SpawnOrder {
            incarnation: incarnation(execution),
            argv: ["sh", "-c", script].map(|argument| argument.as_bytes().to_vec()).to_vec(),
            env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
            cwd: self.dir.path().as_os_str().as_bytes().to_vec(),
            umask: 0o022,
            stdin: Stdin::Null,
            stdout_path: file("out"),
            stderr_path: file("err"),
            leftovers_grace_ms: Some(1_000),
        }
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.state().join("lock")).ok().and_then(|pid| pid.trim().parse::<u32>().ok());
        let is_daemon = |stat: &identity::Stat| {
            fs::read_link(format!("/proc/{}/exe", stat.process.pid)).is_ok_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_roostd")))
        };
        let daemon = pid.and_then(identity::stat).filter(is_daemon);
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let state = self.state();
        let workers =
            pids.filter_map(identity::stat).filter(|stat| identity::marker_of(stat, state.as_os_str().as_bytes()).incarnation().is_some());
        for stat in daemon.into_iter().chain(workers) {
            signal::send(stat.process, &[rustix::process::Signal::KILL]);
        }
    }
}

impl Broker {
    fn next(&mut self) -> ToBroker {
        loop {
            if let Some(message) = self.decoder.next_message().unwrap() {
                return message;
            }
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).expect("a message of the supervisor in time");
            assert!(count > 0, "the link has ended");
            self.decoder.push(&buffer[..count]);
        }
    }

    fn send(&mut self, message: &ToSupervisor) {
        self.stream.write_all(&encode(message).unwrap()).unwrap();
    }

    fn spawn(&mut self, order: SpawnOrder) -> ProcessIdentity {
        self.send(&ToSupervisor::Spawn(Box::new(order)));
        let report = self.next();
        let ToBroker::Spawned { process, .. } = report else { panic!("{report:?}") };
        process
    }

    fn kill(&mut self, execution: u64) {
        self.send(&ToSupervisor::Signal { incarnation: incarnation(execution), signal: Signal::Kill });
    }

    fn exited(&mut self, execution: u64) -> ExitStatus {
        let report = self.next();
        let ToBroker::Exited { incarnation: which, status, .. } = report else { panic!("{report:?}") };
        assert_eq!(which, incarnation(execution));
        status
    }

    fn shut_down(mut self, mut daemon: Child) {
        self.send(&ToSupervisor::Shutdown);
        assert_eq!(daemon.wait().unwrap().code(), Some(0));
    }
}

fn incarnation(execution: u64) -> Incarnation {
    Incarnation { execution: ExecutionId(execution), epoch: Epoch(1) }
}

fn wait_readable(descriptor: impl AsFd, otherwise: impl Fn() -> String) {
    let timeout = Timespec::try_from(PATIENCE).unwrap();
    let ready = poll(&mut [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)], Some(&timeout)).unwrap();
    assert_eq!(ready, 1, "nothing came in time: {}", otherwise());
}

fn signal_daemon(daemon: &Child, signal: rustix::process::Signal) {
    signal::send(identity::stat(daemon.id()).unwrap().process, &[signal]);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_broker_that_dies_costs_nothing() {
    let world = World::new();
    let daemon = world.start();
    let (mut broker, children) = world.broker();
    assert_eq!(children, []);
    let fifo = world.fifo("go");
    let mut order = world.order(1, "read line; [ $line = exit ] && ! read line && exit 3");
    order.stdin = Stdin::Pipe;
    let living = broker.spawn(order);
    let ending = broker.spawn(world.order(2, "read x < go; exit 7"));
    drop(broker);
    // Nobody serves, and a connection waits all the same.
    UnixStream::connect(world.socket()).unwrap();
    fs::write(fifo, "now\n").unwrap();
    let (mut broker, children) = world.broker();
    let report = |execution, process, exited, alive| ChildReport { incarnation: incarnation(execution), process, exited, alive };
    assert_eq!(children[0], report(1, living, None, true));
    // The end came before the hello or after it, and is told once either way.
    let status = children[1].exited.unwrap_or_else(|| broker.exited(2));
    assert_eq!((children[1].process, status), (ending, ExitStatus::Code(7)));
    broker.send(&ToSupervisor::Forget { incarnation: incarnation(2) });
    drop(broker);
    let (mut broker, children) = world.broker();
    assert_eq!(children, [report(1, living, None, true)]);
    broker.send(&ToSupervisor::Signal { incarnation: incarnation(1), signal: Signal::CloseStdin });
    assert_eq!(broker.exited(1), ExitStatus::Code(3));
    broker.shut_down(daemon);
}

#[test]
fn after_a_shutdown_the_next_daemon_adopts() {
    let world = World::new();
    let daemon = world.start();
    let (mut broker, _) = world.broker();
    let process = broker.spawn(world.order(1, "sleep 300; sleep 300"));
    assert!(world.socket().exists());
    broker.shut_down(daemon);
    assert!(!world.socket().exists());
    assert!(identity::is_alive(process));

    let daemon = world.start();
    let (mut broker, children) = world.broker();
    assert_eq!(children, []);
    let stdout_path = world.order(1, "").stdout_path;
    broker.send(&ToSupervisor::Adopt { incarnation: incarnation(1), process: Some(process), stdout_path, leftovers_grace_ms: Some(1_000) });
    assert_eq!(broker.next(), ToBroker::Spawned { incarnation: incarnation(1), process });
    broker.kill(1);
    assert_eq!(broker.exited(1), ExitStatus::Unknown);
    assert!(!identity::is_alive(process));
    broker.shut_down(daemon);
}

#[test]
fn after_a_kill_the_next_daemon_adopts_by_the_marker() {
    let world = World::new();
    let mut daemon = world.start();
    let (mut broker, _) = world.broker();
    // One that double-forks, so that its descendant is re-parented to init when the supervisor is gone.
    let fifo = world.fifo("up");
    let process = broker.spawn(world.order(1, "(setsid sh -c 'echo up > up; sleep 300; sleep 300' &); sleep 300; sleep 300"));
    fs::read_to_string(fifo).unwrap();
    let stray = {
        let state = world.state();
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut marked =
            pids.filter_map(identity::stat).filter(|stat| identity::marker_of(stat, state.as_os_str().as_bytes()).incarnation().is_some());
        marked.find(|stat| stat.session != process.pid && stat.session == stat.process.pid).unwrap().process
    };
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    // The old broker may hold the lock for a moment: that is waited for.
    let daemon = world.start();
    let (mut broker, _) = world.broker();
    let stdout_path = world.order(1, "").stdout_path;
    broker.send(&ToSupervisor::Adopt { incarnation: incarnation(1), process: None, stdout_path, leftovers_grace_ms: Some(1_000) });
    assert_eq!(broker.next(), ToBroker::Spawned { incarnation: incarnation(1), process });
    broker.kill(1);
    assert_eq!(broker.exited(1), ExitStatus::Unknown);
    let descriptor = signal::open(stray);
    if let Ok(descriptor) = descriptor {
        wait_readable(descriptor, || "the re-parented descendant lives".into());
    }
    broker.shut_down(daemon);
}

#[test]
fn a_second_daemon_leaves_with_3_and_the_first_goes_on() {
    let world = World::new();
    let daemon = world.start();
    let (mut broker, _) = world.broker();
    let output = world.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let expected = format!("error: another roostd (pid {}) serves {}\n", daemon.id(), world.state().display());
    assert!(text(&output.stderr).ends_with(&expected), "{}", text(&output.stderr));
    let output = world.command(&["--detach"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), expected));
    UnixStream::connect(world.socket()).unwrap();
    broker.spawn(world.order(1, "true"));
    assert_eq!(broker.exited(1), ExitStatus::Code(0));
    broker.shut_down(daemon);
}

#[test]
fn a_detached_daemon_says_ready_and_is_nobodys_descendant() {
    let world = World::new();
    let mut command = world.command(&["--detach"]);
    // As from inside a worker.
    command.env("ROOST_EXECUTION", "x9").env("ROOST_EPOCH", "1").env("ROOST_STATE_DIR", world.state()).env("ROOST_TOKEN", "secret");
    let mut client = command.spawn().unwrap();
    let (mut broker, _) = world.broker();
    broker.send(&ToSupervisor::Ready);
    let mut line = String::new();
    // To the end of the pipe: nobody holds it open.
    client.stdout.take().unwrap().read_to_string(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut rest = String::new();
    client.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!((client.wait().unwrap().code(), rest.as_str()), (Some(0), ""));

    let pid = fs::read_to_string(world.state().join("lock")).unwrap().trim().parse().unwrap();
    let stat = identity::stat(pid).unwrap();
    assert_eq!((stat.session, stat.group), (pid, pid));
    assert!(!text(&fs::read(format!("/proc/{pid}/environ")).unwrap()).contains("ROOST_"));
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    let log = world.state().join("daemon.log");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(log).unwrap().contains("serving"));
    let descriptor = signal::open(stat.process).unwrap();
    broker.send(&ToSupervisor::Shutdown);
    wait_readable(descriptor, || "the daemon does not leave".into());
    assert!(!world.socket().exists());
}

#[test]
fn a_daemon_in_the_foreground_of_a_worker_drops_the_workers_environment() {
    let world = World::new();
    let mut command = world.command(&[]);
    command.env("ROOST_EXECUTION", "x9").env("ROOST_EPOCH", "1").env("ROOST_STATE_DIR", world.state()).env("ROOST_LOG", "warn");
    let daemon = command.stderr(Stdio::null()).spawn().unwrap();
    let (broker, _) = world.broker();
    let environ = text(&fs::read(format!("/proc/{}/environ", daemon.id())).unwrap());
    let ours: Vec<&str> = environ.split('\0').filter(|entry| entry.starts_with("ROOST_")).collect();
    assert_eq!(ours, ["ROOST_LOG=warn"]);
    broker.shut_down(daemon);
}

#[test]
fn a_broker_that_refuses_ends_the_daemon_with_its_own_words() {
    let world = World::new();
    world.write_script("echo 'error: the journal is damaged: restore the copy' >&2; exit 78");
    let output = world.command(&["--detach"]).output().unwrap();
    let expected = "error: the journal is damaged: restore the copy\n";
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(78), expected));
    let output = world.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output.stderr).contains(expected));
    assert!(!world.socket().exists());
}

#[test]
fn a_broker_that_never_comes_up_is_given_up() {
    let world = World::new();
    world.write_script("exit 1");
    let output = world.command(&["--detach"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("error: the broker ended 5 times"), "{}", text(&output.stdout));
}

#[test]
fn a_restart_takes_the_program_that_is_installed_now() {
    let world = World::new();
    let daemon = world.start();
    let (mut broker, _) = world.broker();
    let process = broker.spawn(world.order(1, "sleep 300; sleep 300"));
    let script = fs::read_to_string(world.path("roostd")).unwrap();
    let broker_part = script.split("then ").nth(1).unwrap().split("; fi").next().unwrap();
    world.write_script(&format!("touch '{}'; {broker_part}", world.path("upgraded").display()));
    broker.send(&ToSupervisor::Restart);
    drop(broker);
    let (mut broker, children) = world.broker();
    assert!(world.path("upgraded").exists());
    assert_eq!((children.len(), children[0].process), (1, process));
    broker.kill(1);
    assert_eq!(broker.exited(1), ExitStatus::Signal(9));
    broker.shut_down(daemon);
}

#[test]
fn a_sigterm_is_the_brokers_to_obey_and_a_second_one_is_not_waited_for() {
    let world = World::new();
    let daemon = world.start();
    let (mut broker, _) = world.broker();
    signal_daemon(&daemon, rustix::process::Signal::HUP);
    signal_daemon(&daemon, rustix::process::Signal::TERM);
    assert_eq!(broker.next(), ToBroker::Terminate);
    // A broker that dies meanwhile is started again, and told again.
    drop(broker);
    let (mut broker, _) = world.broker();
    assert_eq!(broker.next(), ToBroker::Terminate);
    broker.shut_down(daemon);

    let mut daemon = world.start();
    let (mut broker, _) = world.broker();
    let process = broker.spawn(world.order(1, "sleep 300; sleep 300"));
    signal_daemon(&daemon, rustix::process::Signal::INT);
    assert_eq!(broker.next(), ToBroker::Terminate);
    signal_daemon(&daemon, rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(1));
    assert!(identity::is_alive(process), "live workers are left alone");
    assert!(!world.socket().exists());
}

#[test]
fn a_stale_socket_is_replaced_and_the_live_one_of_another_state_directory_is_not() {
    let world = World::new();
    let mut daemon = world.start();
    let (broker, _) = world.broker();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    drop(broker);
    assert!(world.socket().exists());
    let daemon = world.start();
    let (broker, _) = world.broker();
    UnixStream::connect(world.socket()).unwrap();

    let other = world.path("other");
    let mut command = Command::new(env!("CARGO_BIN_EXE_roostd"));
    let output = command.arg("--socket").arg(world.socket()).arg("--state-dir").arg(&other).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output.stderr).contains("another daemon listens on"), "{}", text(&output.stderr));
    UnixStream::connect(world.socket()).unwrap();
    broker.shut_down(daemon);
}

#[test]
fn a_broker_that_speaks_another_link_is_refused() {
    let world = World::new();
    let mut daemon = world.start();
    wait_readable(&world.control, || fs::read_to_string(world.path("log")).unwrap_or_default());
    let (stream, _) = world.control.accept().unwrap();
    let mut broker = Broker { stream, decoder: Decoder::default() };
    broker.send(&ToSupervisor::Hello { version: LINK_VERSION + 1 });
    assert_eq!(daemon.wait().unwrap().code(), Some(1));
    let log = fs::read_to_string(world.path("log")).unwrap();
    assert!(log.contains(&format!("version {}", LINK_VERSION + 1)), "{log}");
}

#[test]
fn a_service_manager_gives_the_socket_and_is_told() {
    let world = World::new();
    let manager = UnixDatagram::bind(world.path("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let given = UnixListener::bind(world.path("given")).unwrap();
    let (null, log) = (fs::File::open("/dev/null").unwrap(), fs::File::create(world.path("log")).unwrap());
    let c = |text: String| CString::new(text).unwrap();
    // The pid is known only to the process itself.
    let script = format!("LISTEN_PID=$$ exec -a \"$0\" '{}' --state-dir '{}'", env!("CARGO_BIN_EXE_roostd"), world.state().display());
    let argv = ["bash".into(), "-c".into(), script, world.path("roostd").display().to_string()].map(c);
    let env = ["PATH=/usr/bin:/bin".into(), "LISTEN_FDS=1".into(), format!("NOTIFY_SOCKET={}", world.path("notify").display())].map(c);
    let descriptors = [(null.as_fd(), 0), (log.as_fd(), 1), (log.as_fd(), 2), (given.as_fd(), 3)];
    let pid =
        spawn::launch(&spawn::Launch { program: c"/bin/bash", argv: &argv, env: &env, cwd: c"/", descriptors: &descriptors }).unwrap();
    let (mut broker, _) = world.broker();
    let told = || {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).unwrap();
        text(&buffer[..count])
    };
    broker.send(&ToSupervisor::Ready);
    broker.send(&ToSupervisor::Status { line: "2 trees".into() });
    assert_eq!([told(), told()], ["READY=1", "STATUS=2 trees"]);
    assert!(!world.socket().exists(), "the given socket is used instead");
    let script = "env | grep -c -E '^(LISTEN|NOTIFY)'";
    broker.spawn(world.order(1, script));
    assert_eq!(broker.exited(1), ExitStatus::Code(1));
    let daemon = signal::open(identity::stat(pid).unwrap().process).unwrap();
    broker.send(&ToSupervisor::Shutdown);
    assert_eq!(told(), "STOPPING=1");
    wait_readable(daemon, || "the daemon does not leave".into());
    assert!(world.path("given").exists(), "it is not ours to remove");
}
