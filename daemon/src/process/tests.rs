//! Real processes under a real table of children.
//!
//! A subreaper, `wait` for any child and the umask belong to a whole process, so each test runs in one of its own: the test
//! starts this binary again for itself alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use roost_not_tested::not_tested;
use roost_proto::id::{Epoch, ExecutionId, Incarnation};
use roost_proto::link::{EXIT_LINE, ExitStatus, ProcessIdentity, Signal, SpawnOrder, Stdin, ToBroker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cgroup::Cgroups;
use super::cgroup::place::Setting;
use super::children::{Children, Lost};
use super::{reap, spawn};
use crate::identity;

const ALONE: &str = "ROOSTD_TEST_ALONE";
/// Set for a test that runs with cgroups: the cgroup2 directory below which it may make its own.
const CGROUP2: &str = "ROOSTD_TEST_CGROUP2";
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the body in a process of its own, which is a subreaper; and again with cgroups, where there is a place for them.
fn alone(name: &str, body: fn(&mut World)) {
    if std::env::var(ALONE).is_ok_and(|chosen| chosen == name) {
        reap::become_subreaper().unwrap();
        spawn::seal_descriptors().unwrap();
        let mut world = World::new();
        body(&mut world);
        return;
    }
    run_alone(name, None);
    match writable_cgroup2() {
        Some(directory) => run_alone(name, Some(&directory)),
        None => not_tested("with cgroups: no cgroup2 directory can be written"),
    }
}

fn run_alone(name: &str, cgroup2: Option<&Path>) {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", &format!("process::tests::{name}"), "--nocapture", "--include-ignored"]).env(ALONE, name);
    test.envs(cgroup2.map(|directory| (CGROUP2, directory)));
    let output = test.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "cgroups: {cgroup2:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "the name of the test is wrong: {name}");
    print!("{}", text(&output.stdout));
}

/// A mounted cgroup2 directory in which one can be made.
fn writable_cgroup2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of_type = mounts.lines().filter_map(|line| line.split(' ').nth(1).filter(|_| line.split(' ').nth(2) == Some("cgroup2")));
    let probe = |directory: &Path| directory.join(format!("roostd-probe-{}-{:?}", std::process::id(), std::thread::current().id()));
    of_type.map(PathBuf::from).find(|directory| fs::create_dir(probe(directory)).and_then(|()| fs::remove_dir(probe(directory))).is_ok())
}

macro_rules! alone {
    ($(#[$doc:meta])* fn $name:ident($world:ident) $body:block) => {
        $(#[$doc])*
        #[test]
        fn $name() {
            alone(stringify!($name), |$world: &mut World| $body);
        }
    };
}

fn incarnation(execution: u64) -> Incarnation {
    Incarnation { execution: ExecutionId(execution), epoch: Epoch(1) }
}

struct World {
    dir: tempfile::TempDir,
    children: Children,
    /// Where the cgroups are, in a run with cgroups.
    cgroups: Option<PathBuf>,
    ended: UnixStream,
    reports: Vec<ToBroker>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (ended, wake) = UnixStream::pair().unwrap();
        ended.set_nonblocking(true).unwrap();
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake).unwrap();
        let cgroups = std::env::var_os(CGROUP2).map(|above| Path::new(&above).join(format!("roostd-test-{}", std::process::id())));
        if let Some(cgroups) = &cgroups {
            fs::create_dir(cgroups).unwrap();
        }
        let children = Self::children(&dir, cgroups.as_deref());
        Self { dir, children, cgroups, ended, reports: Vec::new() }
    }

    /// A table that knows nothing yet.
    fn children(dir: &tempfile::TempDir, cgroups: Option<&Path>) -> Children {
        let chosen = cgroups.and_then(|path| Cgroups::choose(&Setting::Directory(path.into()), dir.path()).unwrap());
        assert_eq!(chosen.is_some(), cgroups.is_some());
        Children::new(dir.path()).unwrap().within(chosen)
    }

    /// The cgroups that exist now.
    fn cgroup_names(&self) -> Vec<String> {
        let entries = self.cgroups.iter().flat_map(|path| fs::read_dir(path).unwrap());
        entries
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn order(&self, execution: u64, argv: &[&str]) -> SpawnOrder {
        let file = |suffix: &str| self.path(&format!("x{execution}-1.{suffix}")).as_os_str().as_bytes().to_vec();
        SpawnOrder {
            incarnation: incarnation(execution),
            argv: argv.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
            env: vec![(b"PATH".to_vec(), b"/usr/local/bin:/usr/bin:/bin".to_vec())],
            cwd: self.dir.path().as_os_str().as_bytes().to_vec(),
            umask: 0o022,
            stdin: Stdin::Null,
            stdout_path: file("out"),
            stderr_path: file("err"),
            leftovers_grace_ms: Some(1_000),
        }
    }

    /// A shell script that can say `up > fifo` when it is ready; returns what it says.
    fn script(&mut self, execution: u64, script: &str) -> (ProcessIdentity, String) {
        let order = self.order(execution, &["sh", "-c", script]);
        self.script_by(order)
    }

    fn script_by(&mut self, order: SpawnOrder) -> (ProcessIdentity, String) {
        let fifo = self.path("fifo");
        if !fifo.exists() {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        let process = self.spawned(&order);
        (process, fs::read_to_string(fifo).unwrap())
    }

    fn spawned(&mut self, order: &SpawnOrder) -> ProcessIdentity {
        self.children.spawn(order);
        let report = self.next_report();
        let ToBroker::Spawned { incarnation, process } = report else { panic!("{report:?}") };
        assert_eq!(incarnation, order.incarnation);
        process
    }

    fn next_report(&mut self) -> ToBroker {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.children.turn(Instant::now());
            self.reports.extend(self.children.take_reports());
            if !self.reports.is_empty() {
                return self.reports.remove(0);
            }
            let now = Instant::now();
            assert!(now < deadline, "nothing was reported; the table is {:?}", self.children);
            let until = self.children.next_deadline().map_or(deadline, |at| at.min(deadline));
            let timeout = Timespec::try_from(until.saturating_duration_since(now) + Duration::from_millis(1)).unwrap();
            let watch = self.children.watch_fd();
            let mut waited = [PollFd::from_borrowed_fd(self.ended.as_fd(), PollFlags::IN), PollFd::from_borrowed_fd(watch, PollFlags::IN)];
            match poll(&mut waited, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("{error}"),
            }
            while self.ended.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            self.children.watched(Instant::now()).unwrap();
            self.children.reap();
        }
    }

    fn exited(&mut self, execution: u64) -> (ExitStatus, Vec<u32>) {
        let report = self.next_report();
        let ToBroker::Exited { incarnation: which, status, leftovers } = report else { panic!("{report:?}") };
        assert_eq!(which, incarnation(execution));
        (status, leftovers)
    }

    fn emptied(&mut self, execution: u64) {
        assert_eq!(self.next_report(), ToBroker::Emptied { incarnation: incarnation(execution) });
    }

    fn run(&mut self, order: &SpawnOrder) -> (ExitStatus, String) {
        self.spawned(order);
        let (status, leftovers) = self.exited(order.incarnation.execution.0);
        assert_eq!(leftovers, [0_u32; 0]);
        let text = |path: &[u8]| fs::read_to_string(Path::new(std::ffi::OsStr::from_bytes(path))).unwrap();
        (status, text(&order.stdout_path) + &text(&order.stderr_path))
    }

    fn failure(&mut self, order: &SpawnOrder) -> (String, bool) {
        self.children.spawn(order);
        let report = self.next_report();
        let ToBroker::SpawnFailed { reason, transient, .. } = report else { panic!("{report:?}") };
        let out = Path::new(std::ffi::OsStr::from_bytes(&order.stdout_path));
        assert!(!out.exists(), "the output file of a failed start must not stay: it would be evidence");
        (reason, transient)
    }

    /// Living processes that carry a marker of this world.
    fn marked(&self) -> Vec<ProcessIdentity> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
        let marked = pids.filter_map(identity::stat).filter(|stat| self.marker(stat).is_some());
        marked.map(|stat| stat.process).collect()
    }

    fn marker(&self, stat: &identity::Stat) -> Option<Incarnation> {
        identity::marker_of(stat, self.dir.path().as_os_str().as_bytes()).incarnation()
    }
}

/// Waits for this, or for a signal.
fn await_event(descriptor: BorrowedFd<'_>, event: PollFlags) {
    let patience = Timespec::try_from(PATIENCE).unwrap();
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, event)], Some(&patience)) {
        Ok(0) => panic!("nothing happens"),
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Ends all that is in a cgroup, waits until it is empty, and removes it with what is below.
fn remove_cgroup(path: &Path) {
    fs::write(path.join("cgroup.kill"), "1").unwrap();
    let events = fs::File::open(path.join("cgroup.events")).unwrap();
    while std::io::read_to_string(&events).unwrap().contains("populated 1") {
        await_event(events.as_fd(), PollFlags::PRI);
        rustix::fs::seek(&events, rustix::fs::SeekFrom::Start(0)).unwrap();
    }
    for entry in fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        remove_cgroup(&entry);
    }
    fs::remove_dir(path).unwrap();
}

/// Whatever a test left, above all one that failed.
impl Drop for World {
    fn drop(&mut self) {
        for process in self.marked() {
            super::signal::send(process, &[rustix::process::Signal::KILL]);
        }
        if let Some(cgroups) = &self.cgroups {
            remove_cgroup(cgroups);
        }
    }
}

alone! {
    fn a_worker_has_its_own_surroundings_and_nothing_of_ours(world) {
        let (status, text) = world.run(&{
            let mut order = world.order(1, &["env"]);
            order.env.extend([(b"A B".to_vec(), b"\xff=\n".to_vec()), (b"EMPTY".to_vec(), Vec::new()), (b"ROOST_EPOCH".to_vec(), b"9".to_vec())]);
            order.argv.push(b"-0".to_vec());
            order.stdout_path = world.path("x1-1.raw").as_os_str().as_bytes().to_vec();
            order.stderr_path = order.stdout_path.clone();
            order.env[1].1 = b"v=\n".to_vec();
            order
        });
        assert_eq!(status, ExitStatus::Code(0));
        let state = format!("ROOST_STATE_DIR={}", world.dir.path().display());
        let expected = ["PATH=/usr/local/bin:/usr/bin:/bin", "A B=v=\n", "EMPTY=", "ROOST_EXECUTION=x1", "ROOST_EPOCH=1", &state];
        // Both streams were one file, read twice.
        assert_eq!(text[..text.len() / 2].split_terminator('\0').collect::<Vec<_>>(), expected);

        let script = "pwd; umask; grep -E '^(SigBlk|SigIgn)' /proc/self/status; cut -d' ' -f1,5,6,7 /proc/$$/stat; \
                      for f in /proc/$$/fd/*; do readlink $f; done; touch made";
        let mut order = world.order(2, &["sh", "-c", script]);
        order.umask = 0o027;
        let process = world.spawned(&order);
        assert_eq!(world.exited(2), (ExitStatus::Code(0), Vec::new()));
        let text = fs::read_to_string(world.path("x2-1.out")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let path = |name: &str| world.path(name).display().to_string();
        let zeros = "0000000000000000";
        let pid = process.pid;
        let expected = [
            world.dir.path().display().to_string(),
            "0027".into(),
            format!("SigBlk:\t{zeros}"),
            format!("SigIgn:\t{zeros}"),
            format!("{pid} {pid} {pid} 0"), // pid, group, session, terminal
            "/dev/null".into(),
            path("x2-1.out"),
            path("x2-1.err"),
        ];
        assert_eq!(lines, expected);
        assert_eq!(fs::metadata(world.path("made")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::metadata(world.path("x2-1.out")).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

alone! {
    fn each_failed_start_names_what_was_at_fault(world) {
        let file = |name: &str, mode: u32, text: &[u8]| {
            fs::write(world.path(name), text).unwrap();
            fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        file("plain", 0o644, b"text");
        file("lost", 0o755, b"#!/no/such/interpreter -x\n");
        file("elf", 0o755, b"\x7fELF\x02\x01\x01\0\0garbage");
        let large = "a".repeat(200 << 10);
        let cases: [(&[&str], Option<&str>, &[&str]); 12] = [
            (&["no-such-tool"], None, &["no-such-tool", "not found on PATH", "/usr/local/bin:/usr/bin:/bin"]),
            (&["./gone"], None, &["gone\"", "does not exist"]),
            (&["./plain"], None, &["plain\"", "not executable"]),
            (&["/usr"], None, &["\"/usr\" is a directory"]),
            (&["./lost"], None, &["lost\"", "interpreter", "/no/such/interpreter"]),
            (&["./elf"], None, &["elf\"", "format"]),
            (&["true", &large], None, &["too large", "standard input"]),
            (&["true"], Some("/no/such/place"), &["working directory \"/no/such/place\" does not exist"]),
            (&["true"], Some("/dev/null"), &["working directory \"/dev/null\" is not a directory"]),
            (&["true"], Some("here"), &["\"here\" is not an absolute path"]),
            (&[], None, &["argument list is empty"]),
            (&["tr\0ue"], None, &["NUL"]),
        ];
        for (number, (argv, cwd, expected)) in cases.into_iter().enumerate() {
            let mut order = world.order(number as u64, argv);
            order.cwd = cwd.map_or(order.cwd, |cwd| cwd.as_bytes().to_vec());
            let (reason, transient) = world.failure(&order);
            assert!(expected.iter().all(|part| reason.contains(part)) && !transient, "{argv:?}: {reason}");
        }
        let mut order = world.order(50, &["true"]);
        order.stdin = Stdin::File(b"/no/such/input".to_vec());
        assert!(world.failure(&order).0.contains("standard input file \"/no/such/input\""));
        assert!(world.children.hello().is_empty());
        assert_eq!(world.run(&world.order(51, &["true"])).0, ExitStatus::Code(0), "and siblings are not touched");
    }
}

alone! {
    fn short_resources_are_told_from_lasting_faults(world) {
        let order = world.order(1, &["true"]);
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let set = |current| rustix::process::setrlimit(rustix::process::Resource::Nofile, rustix::process::Rlimit { current, ..limits });
        set(Some(4)).unwrap();
        world.children.spawn(&order);
        set(limits.current).unwrap();
        let report = world.next_report();
        assert!(matches!(report, ToBroker::SpawnFailed { transient: true, .. }), "{report:?}");
        assert_eq!(world.run(&order).0, ExitStatus::Code(0));
    }
}

alone! {
    fn ends_are_told_as_they_were(world) {
        assert_eq!(world.run(&world.order(1, &["sh", "-c", "exit 7"])).0, ExitStatus::Code(7));
        assert_eq!(world.run(&world.order(2, &["sh", "-c", "kill -9 $$"])).0, ExitStatus::Signal(9));
        // A script without `#!` is the shell's.
        fs::write(world.path("script"), "echo $0 $1; exit 3").unwrap();
        fs::set_permissions(world.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
        let (status, text) = world.run(&world.order(3, &["./script", "one"]));
        assert_eq!((status, text), (ExitStatus::Code(3), format!("{} one\n", world.path("./script").display())));
        // The end is the main process's, not end-of-file: its output is held open by a leftover here.
        let mut order = world.order(4, &["sh", "-c", "sleep 300 & exit 5"]);
        order.leftovers_grace_ms = None;
        world.spawned(&order);
        assert_eq!(world.exited(4).0, ExitStatus::Code(5));
        world.emptied(4);
    }
}

alone! {
    fn asked_twice_a_process_is_started_once_and_kept_until_it_is_forgotten(world) {
        let mut order = world.order(1, &["cat"]);
        order.stdin = Stdin::Pipe;
        let process = world.spawned(&order);
        assert_eq!(world.spawned(&order), process);
        let report = world.children.hello().remove(0);
        assert_eq!((report.process, report.exited, report.alive), (process, None, true));
        world.children.forget(incarnation(1));
        world.children.signal(incarnation(1), Signal::CloseStdin);
        assert_eq!(world.exited(1), (ExitStatus::Code(0), Vec::new()));
        assert_eq!(fs::read(world.path("x1-1.out")).unwrap(), EXIT_LINE);
        let report = world.children.hello().remove(0);
        assert_eq!((report.process, report.exited, report.alive), (process, Some(ExitStatus::Code(0)), false));
        assert_eq!(world.spawned(&order), process);
        assert_eq!(world.exited(1).0, ExitStatus::Code(0));
        world.children.forget(incarnation(1));
        assert!(world.children.hello().is_empty());
    }
}

alone! {
    fn a_worker_that_has_filled_its_own_input_holds_nobody_up(world) {
        let fill = "dd if=/dev/zero of=/proc/self/fd/0 bs=1 count=1000000 oflag=nonblock conv=notrunc 2>/dev/null; echo up > fifo; exec sleep 300";
        let mut order = world.order(1, &["sh", "-c", fill]);
        order.stdin = Stdin::Pipe;
        world.script_by(order);
        world.children.signal(incarnation(1), Signal::CloseStdin);
        world.children.signal(incarnation(1), Signal::Term);
        assert_eq!(world.exited(1).0, ExitStatus::Signal(15));
    }
}

const STUBBORN: &str = "trap '' TERM; ";

alone! {
    fn leftovers_are_ended_wherever_they_went(world) {
        let cases = [
            ("same session", "sleep 300 & echo $! > fifo"),
            ("own session", "setsid sleep 300 & echo up > fifo"),
            ("own group, stopped", "setsid sh -c 'kill -STOP $$' & echo up > fifo"),
            ("re-parented from its own session", "(setsid sh -c 'sleep 300 & echo $! > fifo' &)"),
            ("no environment, same session", "env -i sleep 300 & echo up > fifo"),
            ("below a re-parented one", "(setsid sh -c 'env -i setsid sleep 300 & echo up > fifo; wait' &) ; sleep 0.2"),
        ];
        for (number, (what, script)) in cases.into_iter().enumerate() {
            let execution = number as u64;
            world.script(execution, script);
            let (status, leftovers) = world.exited(execution);
            assert!(status == ExitStatus::Code(0) && !leftovers.is_empty(), "{what}: {status:?} {leftovers:?}");
            let report = world.children.hello().into_iter().find(|report| report.incarnation == incarnation(execution)).unwrap();
            assert!(report.alive && report.exited.is_some(), "{what}");
            world.emptied(execution);
            assert!(leftovers.into_iter().all(|pid| !identity::stat(pid).is_some_and(|stat| stat.alive)), "{what}");
        }
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn leftovers_that_ignore_term_are_killed_after_a_second(world) {
        let script = format!("{STUBBORN} (setsid sh -c 'sleep 300; sleep 300' &); (sleep 300; sleep 300) & echo up > fifo");
        world.script(1, &script);
        let begun = Instant::now();
        assert!(world.exited(1).1.len() >= 2);
        world.emptied(1);
        assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn kept_leftovers_are_listed_and_left_alone(world) {
        let mut order = world.order(1, &["sh", "-c", "setsid sleep 300 & echo up > fifo"]);
        order.leftovers_grace_ms = None;
        world.script_by(order);
        let (_, leftovers) = world.exited(1);
        world.emptied(1);
        assert_eq!(leftovers.len(), 1);
        assert!(identity::stat(leftovers[0]).unwrap().alive);
        // Of no concern to others that end meanwhile, and still within reach of an explicit signal.
        assert_eq!(world.run(&world.order(2, &["true"])).0, ExitStatus::Code(0));
        // Whoever asks next is told of them as well.
        assert!(world.children.hello()[0].alive);
        assert_eq!(world.exited(1), (ExitStatus::Code(0), leftovers.clone()));
        world.emptied(1);
        let leftover = super::signal::open(identity::stat(leftovers[0]).unwrap().process).unwrap();
        world.children.signal(incarnation(1), Signal::Kill);
        world.children.turn(Instant::now());
        let patience = Timespec::try_from(PATIENCE).unwrap();
        assert_eq!(poll(&mut [PollFd::from_borrowed_fd(leftover.as_fd(), PollFlags::IN)], Some(&patience)), Ok(1));
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn a_kill_leaves_nothing_of_a_stubborn_and_scattered_tree(world) {
        let script = format!(
            "{STUBBORN} sh -c 'sleep 300; sleep 300' & setsid sh -c 'sleep 300; sleep 300' & \
             (setsid sh -c '(setsid sleep 300 &); echo up > fifo; sleep 300; sleep 300' &); wait; sleep 300; sleep 300"
        );
        let (process, _) = world.script(1, &script);
        let (other, _) = world.script(2, "echo up > fifo; sleep 300; sleep 300");
        world.children.signal(incarnation(1), Signal::Term);
        world.children.turn(Instant::now());
        assert!(identity::is_alive(process));
        assert!(world.marked().len() >= 5);
        world.children.signal(incarnation(1), Signal::Kill);
        let (status, leftovers) = world.exited(1);
        assert_eq!(status, ExitStatus::Signal(9));
        if !leftovers.is_empty() {
            world.emptied(1);
        }
        let of_the_first = |process: &ProcessIdentity| {
            identity::stat(process.pid).is_some_and(|stat| world.marker(&stat) == Some(incarnation(1)))
        };
        assert_eq!(world.marked().into_iter().filter(of_the_first).count(), 0);
        assert!(identity::is_alive(other), "a sibling is not touched");
    }
}

alone! {
    fn a_tree_that_forks_while_it_is_killed_is_gone_in_the_end(world) {
        let script = format!("{STUBBORN} echo up > fifo; while :; do setsid sleep 300 & sleep 0.01; done");
        world.script(1, &format!("({script}) & ({script}) & wait"));
        world.children.signal(incarnation(1), Signal::Kill);
        let (_, leftovers) = world.exited(1);
        if !leftovers.is_empty() {
            world.emptied(1);
        }
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn a_stopped_process_takes_a_term(world) {
        let (process, _) = world.script(1, "echo up > fifo; kill -STOP $$; sleep 300");
        world.children.signal(incarnation(1), Signal::Term);
        assert_eq!(world.exited(1).0, ExitStatus::Signal(15));
        assert!(!identity::is_alive(process));
    }
}

alone! {
    fn another_supervisor_adopts_what_is_alive_and_tells_what_is_not(world) {
        let (recorded, _) = world.script(1, "echo up > fifo; sleep 300; exit 4");
        let (unrecorded, _) = world.script(2, "setsid sleep 300 & echo up > fifo; exec sleep 300");
        world.run(&world.order(3, &["true"]));
        world.children = World::children(&world.dir, world.cgroups.as_deref());
        let now = Instant::now();
        let out = |execution: u64| world.path(&format!("x{execution}-1.out")).as_os_str().as_bytes().to_vec();
        let [out1, out2, out3, out4] = [1, 2, 3, 4].map(out);

        let lost = |process, stdout_path| Lost { process, stdout_path, leftovers_grace_ms: Some(1_000) };
        world.children.adopt(incarnation(1), lost(Some(recorded), out1), now);
        world.children.adopt(incarnation(2), lost(None, out2), now);
        world.children.adopt(incarnation(3), lost(None, out3), now);
        world.children.adopt(incarnation(4), lost(None, out4), now);
        assert_eq!(world.next_report(), ToBroker::Spawned { incarnation: incarnation(1), process: recorded });
        assert_eq!(world.next_report(), ToBroker::Spawned { incarnation: incarnation(2), process: unrecorded });
        assert_eq!(world.exited(3), (ExitStatus::Unknown, Vec::new()));
        assert_eq!(world.next_report(), ToBroker::NeverStarted { incarnation: incarnation(4) });
        let held: BTreeMap<_, _> = world.children.hello().into_iter().map(|report| (report.incarnation, report.alive)).collect();
        assert_eq!(held.into_iter().collect::<Vec<_>>(), [(incarnation(1), true), (incarnation(2), true), (incarnation(3), false)]);

        // A pid of another process is not the one on record.
        let recycled = ProcessIdentity { start_ticks: recorded.start_ticks + 1, ..recorded };
        world.children.adopt(incarnation(5), lost(Some(recycled), b"/none".to_vec()), now);
        assert_eq!(world.exited(5), (ExitStatus::Unknown, Vec::new()));
        assert!(identity::is_alive(recorded));

        world.children.signal(incarnation(1), Signal::Term);
        let (status, leftovers) = world.exited(1);
        assert_eq!(status, ExitStatus::Unknown);
        // Its `sleep` got the TERM too, and may die a little later than it.
        if !leftovers.is_empty() {
            world.emptied(1);
        }
        // What an adopted worker leaves behind is ended as well.
        super::signal::send(unrecorded, &[rustix::process::Signal::TERM]);
        let (status, leftovers) = world.exited(2);
        assert_eq!((status, leftovers.len()), (ExitStatus::Unknown, 1));
        world.emptied(2);
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn a_dead_worker_with_leftovers_is_found_by_its_marker(world) {
        let mut order = world.order(1, &["sh", "-c", "(sleep 300 & echo up > fifo)"]);
        order.leftovers_grace_ms = None;
        let (process, _) = world.script_by(order.clone());
        world.exited(1);
        world.emptied(1);
        world.children = World::children(&world.dir, world.cgroups.as_deref());
        let lost = Lost { process: Some(process), stdout_path: order.stdout_path.clone(), leftovers_grace_ms: Some(1_000) };
        world.children.adopt(incarnation(1), lost, Instant::now());
        let (status, leftovers) = world.exited(1);
        assert_eq!((status, leftovers.len()), (ExitStatus::Unknown, 1));
        assert_eq!(world.children.hello()[0].process, process);
        world.emptied(1);
        assert_eq!(world.marked(), []);
    }
}

alone! {
    fn a_descendant_without_marker_and_parents_is_known_from_an_earlier_look(world) {
        let script = "env -i setsid sh -c 'trap \"\" TERM; echo up > fifo; sleep 300; sleep 300' & wait";
        let (process, _) = world.script(1, script);
        world.children.signal(incarnation(1), Signal::Term);
        let (status, leftovers) = world.exited(1);
        assert_eq!((status, leftovers.is_empty()), (ExitStatus::Signal(15), false));
        world.emptied(1);
        assert!(!identity::is_alive(process) && leftovers.iter().all(|pid| !identity::stat(*pid).is_some_and(|stat| stat.alive)));
    }
}

/// A shell text that leaves its session, its environment and its parents, says so, and ignores TERM.
const AWAY: &str = "(env -i setsid sh -c 'trap \"\" TERM; (echo up > fifo; while :; do /bin/sleep 300; done) & exit' &)";

alone! {
    fn whoever_hides_from_every_other_search_is_found_by_the_cgroup(world) {
        if world.cgroups.is_none() {
            return;
        }
        world.script(1, AWAY);
        let (status, leftovers) = world.exited(1);
        assert!(status == ExitStatus::Code(0) && !leftovers.is_empty(), "{status:?} {leftovers:?}");
        assert_eq!(world.cgroup_names().len(), 1);
        world.emptied(1);
        assert!(leftovers.iter().all(|pid| !identity::stat(*pid).is_some_and(|stat| stat.alive)));
        assert_eq!(world.cgroup_names(), [""; 0]);

        // The same under another supervisor, in a cgroup that the worker made, and with KILL.
        let deep = "d=$(sed -n 's/^0:://p' /proc/self/cgroup); d=$(echo \"$C\"/${d##*/}); mkdir -p $d/a/b; echo $$ > $d/a/b/cgroup.procs;";
        let mut order = world.order(2, &["sh", "-c", &format!("{deep} {AWAY}; exec env -i /bin/sleep 300")]);
        order.env.push((b"C".to_vec(), world.cgroups.as_ref().unwrap().as_os_str().as_bytes().to_vec()));
        let (process, said) = world.script_by(order.clone());
        assert_eq!(said, "up\n");
        world.children = World::children(&world.dir, world.cgroups.as_deref());
        let lost = Lost { process: Some(process), stdout_path: order.stdout_path, leftovers_grace_ms: Some(1_000) };
        world.children.adopt(incarnation(2), lost, Instant::now());
        assert!(matches!(world.next_report(), ToBroker::Spawned { .. }));
        world.children.signal(incarnation(2), Signal::Kill);
        let (_, leftovers) = world.exited(2);
        if !leftovers.is_empty() {
            world.emptied(2);
        }
        assert_eq!(world.cgroup_names(), [""; 0]);
    }
}

alone! {
    fn the_cgroup_of_kept_leftovers_goes_when_they_have_gone(world) {
        if world.cgroups.is_none() {
            return;
        }
        let mut order = world.order(1, &["sh", "-c", AWAY]);
        order.leftovers_grace_ms = None;
        world.script_by(order);
        let (_, leftovers) = world.exited(1);
        world.emptied(1);
        world.children.forget(incarnation(1));
        assert_eq!(world.cgroup_names().len(), 1);
        // Another supervisor leaves what is in use alone until it is not, and removes what is not.
        let names = world.cgroup_names();
        let other = world.cgroups.as_ref().unwrap().join(names[0].replace("x1-1", "x7-1"));
        fs::create_dir_all(other.join("deeper")).unwrap();
        world.children = World::children(&world.dir, world.cgroups.as_deref());
        assert_eq!(world.cgroup_names(), names);
        for pid in leftovers {
            if let Some(stat) = identity::stat(pid) {
                super::signal::send(stat.process, &[rustix::process::Signal::KILL]);
            }
        }
        while !world.cgroup_names().is_empty() {
            await_event(world.children.watch_fd(), PollFlags::IN);
            world.children.watched(Instant::now()).unwrap();
        }
    }
}

alone! {
    fn without_its_cgroup_a_worker_runs_all_the_same(world) {
        let Some(cgroups) = world.cgroups.clone() else { return };
        fs::write(cgroups.join("cgroup.max.descendants"), "0").unwrap();
        assert_eq!(world.run(&world.order(1, &["true"])).0, ExitStatus::Code(0));
        fs::write(cgroups.join("cgroup.max.descendants"), "max").unwrap();
        // One of threads takes no process.
        let thread = cgroups.join("thread");
        fs::create_dir(&thread).unwrap();
        fs::write(thread.join("cgroup.type"), "threaded").unwrap();
        assert_eq!(world.run(&world.order(2, &["true"])).0, ExitStatus::Code(0));
        fs::remove_dir(thread).unwrap();
        assert_eq!(world.cgroup_names(), [""; 0]);
    }
}

alone! {
    /// `cargo test --release -p roostd --lib -- --ignored --nocapture the_cost` prints what a cgroup costs per worker.
    #[ignore = "a measurement"]
    fn the_cost_of_a_cgroup(world) {
        const ROUNDS: u64 = 500;
        if world.cgroups.is_none() {
            return;
        }
        let mut other = World::children(&world.dir, None);
        // With and without in turn, so that a busy machine is busy for both.
        let mut times: [Vec<(Duration, Duration)>; 2] = Default::default();
        for number in 0..2 * ROUNDS {
            let order = world.order(number, &["true"]);
            let begun = Instant::now();
            world.children.spawn(&order);
            let started = begun.elapsed();
            assert!(matches!(world.next_report(), ToBroker::Spawned { .. }));
            world.exited(number);
            times[usize::from(number % 2 == 1)].push((started, begun.elapsed()));
            world.children.forget(order.incarnation);
            std::mem::swap(&mut world.children, &mut other);
        }
        let median = |times: &[(Duration, Duration)], of: fn(&(Duration, Duration)) -> Duration| {
            let mut sorted: Vec<Duration> = times.iter().map(of).collect();
            sorted.sort();
            sorted[sorted.len() / 2]
        };
        let [with, without] = times;
        for (what, of) in [("start", (|times| times.0) as fn(&(Duration, Duration)) -> Duration), ("start to end", |times| times.1)] {
            let (with, without) = (median(&with, of), median(&without, of));
            let ratio = with.as_secs_f64() / without.as_secs_f64();
            println!("{what}: with a cgroup {with:?}, without {without:?}, ratio {ratio:.2}");
        }
    }
}
