//! Public cases and scenarios of the command runner that no other test shows; `docs/guarantees.md` says where the rest is.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use roost_tests::real::{Cmd, Home, Tree, Watched, by_name, find, is_root, outcome_of, shim};
use rustix::process::Signal;
use serde_json::json;

/// A user without a passwd entry, and one more that is not us.
const NOBODY_KNOWN: u32 = 54_321;

/// Programs that another user may run, in a directory that it may enter; they run as that user.
struct Elsewhere<'a> {
    home: &'a Home,
    programs: PathBuf,
}

impl<'a> Elsewhere<'a> {
    fn new(home: &'a Home) -> Self {
        let programs = home.file("programs");
        fs::create_dir(&programs).unwrap();
        for name in ["roost", "roostd"] {
            fs::copy(home.program(name), programs.join(name)).unwrap();
        }
        fs::set_permissions(home.dir(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in ["theirs", "work"] {
            fs::create_dir(home.file(directory)).unwrap();
            chown(home.file(directory), Some(NOBODY_KNOWN), Some(NOBODY_KNOWN)).unwrap();
        }
        Self { home, programs }
    }

    fn run(&self, program: &str, args: &[&str]) -> Cmd {
        let id = NOBODY_KNOWN.to_string();
        Cmd::new("/usr/bin/setpriv")
            .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
            .arg(self.programs.join(program))
            .args(args)
            .env("PATH", "/usr/bin:/bin")
            .env("F", self.home.dir())
            .cwd(self.home.file("work"))
    }
}

// B05 (c).
#[test]
fn without_any_home_a_start_is_refused_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let elsewhere = Elsewhere::new(&home);
    for done in [elsewhere.run("roostd", &[]).run(), elsewhere.run("roost", &["status"]).run()] {
        assert!(done.code() > 0 && done.err().contains("ROOST_STATE_DIR") && done.took < Duration::from_secs(2), "{done}");
    }
    assert_eq!(fs::read_dir(home.file("work")).unwrap().count(), 0);
}

// B05 (d).
#[test]
fn root_with_a_users_home_leaves_nothing_of_its_own_there() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let elsewhere = Elsewhere::new(&home);
    let theirs = home.file("theirs");
    elsewhere.run("roost", &["run", "--", "true"]).env("HOME", &theirs).env("XDG_RUNTIME_DIR", &theirs).run().ok();
    let as_root = |args: &[&str]| home.roost(args).without("ROOST_STATE_DIR").env("HOME", &theirs).env("XDG_RUNTIME_DIR", &theirs).run();
    for args in [&["status"][..], &["run", "--", "true"], &["daemon", "start"]] {
        let done = as_root(args);
        assert!(done.code() > 0 && done.err().contains(theirs.to_str().unwrap()), "{done}");
    }
    fn owners(below: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(below).unwrap() {
            let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            if metadata.uid() == 0 {
                found.push(path.clone());
            }
            if metadata.is_dir() {
                owners(&path, found);
            }
        }
    }
    let mut of_root = Vec::new();
    owners(&theirs, &mut of_root);
    assert!(of_root.is_empty(), "{of_root:?}");
    elsewhere.run("roost", &["daemon", "stop", "--now"]).env("HOME", &theirs).env("XDG_RUNTIME_DIR", &theirs).run().ok();
}

// B02 (c).
#[test]
fn where_locks_do_not_work_no_daemon_starts_and_the_lock_is_named() {
    let home = Home::new();
    let source =
        "#define _GNU_SOURCE\n#include <errno.h>\nint flock(int fd, int how) { (void)fd; (void)how; errno = ENOLCK; return -1; }\n";
    let shim = shim(&home, "nolock", source);
    for _ in 0..2 {
        let done = home.command(home.program("roostd")).env("LD_PRELOAD", &shim).within(Duration::from_secs(10)).run();
        assert!(done.code() > 0 && done.took < Duration::from_secs(2), "{done}");
        assert!(done.err().contains(home.state_dir().join("lock").to_str().unwrap()), "{done}");
    }
    let (supervisors, brokers) = home.daemons();
    assert!(supervisors.is_empty() && brokers.is_empty());
}

// B08 (c).
#[test]
fn the_end_of_a_terminal_ends_neither_daemon_nor_worker() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    // `script` makes a terminal, and takes it away when it is killed.
    let inside = r#"eval "$(roost open)"; echo "$ROOST_TREE $ROOST_TOKEN" >"$F/events"
        roost spawn --name w -- sh -c 'echo up >"$F/events"; read x <"$F/gate"; echo ok'; echo spawned >"$F/events"; exec sleep 600"#;
    home.script("inside", inside);
    let terminal = home.command("script").args(["-qec", r#"sh "$F/inside""#, "/dev/null"]).start();
    let opened = events.line();
    let (id, token) = opened.split_once(' ').unwrap();
    let mut news = events.lines(2);
    news.sort();
    assert_eq!(news, ["spawned", "up"]);
    let pids = home.daemon();
    terminal.signal(Signal::KILL);
    terminal.end();
    let cpu = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<u64> = stat.rsplit_once(')').unwrap().1.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // utime and stime: the state is no number, so they are at 10 and 11.
        fields[10] + fields[11]
    };
    let before = cpu(pids.supervisor) + cpu(pids.broker);
    // The case's own time: nothing happens in it, and so nothing can be awaited.
    std::thread::sleep(Duration::from_secs(3));
    let ticks = cpu(pids.supervisor) + cpu(pids.broker) - before;
    assert!(ticks <= 15, "{ticks} ticks of 10 ms in 3 s");
    assert_eq!(home.daemon(), pids);
    gate.release(1);
    let result = home.roost(["result", "w", "--wait"]).env("ROOST_TREE", id).env("ROOST_TOKEN", token).run().ok();
    assert_eq!(result.text(), "ok\n");
}

// B13, as far as commands go: what the wire and the readers do with separators.
#[test]
fn separators_of_unicode_are_data() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let text = "a\u{2028}b\u{2029}c\u{85}d\r\ne\u{b}f";
    assert_eq!(text.len(), 17);
    let tasks = json!([{"name": "w", "argv": ["cat"], "task": text}, {"name": text.replace(['\r', '\n', '\u{b}', '\u{85}'], ""), "argv": ["true"]}]);
    // Compact JSON leaves what is above U+001F as it is.
    tree.roost(["spawn", "--json", "--tasks", "-"]).stdin(tasks.to_string()).run().ok();
    assert_eq!(tree.answer("w"), text);
    assert_eq!(tree.roost(["result", "w", "--raw"]).run().ok().stdout, text.as_bytes());
    assert_eq!(tree.roost(["status", "--json"]).run().ok().text().lines().count(), 1);
}

// B19 (a).
#[test]
fn parents_that_wait_hold_no_slot_that_their_children_need() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "2"]);
    let parent = r#"roost spawn -- sleep 0.2 >&2; roost spawn -- sleep 0.2 >&2; roost wait >&2; echo done"#;
    for name in ["P1", "P2"] {
        tree.spawn_with(name, &["--descendants", "2"], parent);
    }
    for name in ["P1", "P2"] {
        assert_eq!(tree.answer(name), "done\n");
    }
    assert_eq!(tree.status()["trees"][0]["completed"], 6);
    assert_eq!((home.daemon_status()["live"].as_u64(), home.workers().len()), (Some(0), 0));
}

#[test]
fn completed_never_counts() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--cap", "4", "--budget", "1000"]);
    let mut wire = tree.wire();
    let submitter = json!({"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18});
    for number in 0..1_000 {
        // Without a word of close or of having been told: in the foreground, or its end is only looked at.
        let foreground = number % 2 == 0;
        let tasks = json!([{"name": format!("w{number}"), "argv": ["true"]}]);
        let launch = json!({"request_id": format!("r{number}"), "tasks": tasks, "submitter": submitter, "foreground": foreground});
        let receipt = wire.call("launch", &launch).unwrap();
        assert_eq!(receipt["tasks"][0]["status"], "started", "{receipt}");
        if !foreground {
            let waited =
                wire.call("wait", &json!({"request_id": format!("wait{number}"), "names": [format!("w{number}")], "tell_later": true}));
            assert_eq!(outcome_of(&waited.unwrap()["ended"][0]), "completed");
        }
    }
    let progress = tree.status()["trees"][0].clone();
    assert_eq!((&progress["completed"], &progress["live"], &progress["queued"]), (&json!(1_000), &json!(0), &json!(0)));
}

#[test]
fn broker_kill9_keeps_output() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    let script = r#"printf 'a\377\0\r\n'; echo half >"$F/events"; read x <"$F/gate"; head -c 300000 /dev/zero | tr '\0' z; exit 0"#;
    tree.spawn("w", script);
    assert_eq!(events.line(), "half");
    home.kill_broker();
    gate.release(1);
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "w completed\n");
    home.kill_broker();
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "", "told twice");
    let expected = [b"a\xff\0\r\n".as_slice(), &[b'z'; 300_000]].concat();
    assert!(tree.roost(["result", "w", "--raw"]).run().ok().stdout == expected);
    assert_eq!(tree.worker("w")["epoch"], 1);
}

#[test]
fn pull_then_push() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "echo R");
    assert_eq!(tree.answer("w"), "R\n");
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "");
}

#[test]
fn push_then_pull() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "echo R");
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "w completed\n");
    assert_eq!(tree.answer("w"), "R\n");
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "");
}

#[test]
fn recipient_gone_then_back() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "echo R");
    // A lead that waits and is killed: its wait is over, and nobody was told.
    let mut gate = home.fifo("gate");
    tree.spawn("later", r#"read x <"$F/gate""#);
    let waits = tree.roost(["wait"]).start();
    tree.until("the end of w", |status| outcome_of(by_name(status, "w")) == "completed");
    waits.signal(Signal::KILL);
    waits.end();
    // The daemon has noticed: only whoever asks is connected. Told in the moment of its death, a lead repeats its request id or reads
    // the results; that is another test's business.
    home.until_connections(1);
    gate.release(1);
    tree.until("the end of later", |status| outcome_of(by_name(status, "later")) == "completed");
    home.kill_daemon();
    // Back over a new connection to a new daemon.
    let mut told: Vec<String> = tree.roost(["wait"]).run().ok().text().lines().map(str::to_owned).collect();
    told.sort();
    assert_eq!(told, ["later completed", "w completed"]);
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "");
}

#[test]
fn name_reuse() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "exec sleep 600");
    assert_eq!(tree.roost(["stop", "w"]).run().ok().text(), "w stopped\n");
    // The name stays the old worker's: a newer one cannot have it, so nothing that was meant for the old one reaches it.
    for name in ["w", "W"] {
        assert_eq!(tree.roost(["spawn", "--json", "--name", name, "--", "true"]).run().expect(1).json()["error"]["kind"], "name_taken");
    }
    assert!(tree.roost(["stop", "w"]).run().ok().text().contains("already"), "stopping again is no error and stops nothing");
    assert_eq!(tree.status()["workers"].as_array().unwrap().len(), 1);
}

#[test]
fn flood_does_not_starve() {
    let home = Home::new();
    home.start_daemon(&["--cap", "2"]);
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let (flood, other) = (Tree::open(&home, &["--budget", "1000"]), Tree::open(&home, &[]));
    let tasks: Vec<_> = (0..20).map(|_| json!({"argv": ["sh", "-c", r#"echo flood >"$F/events"; read x <"$F/gate""#]})).collect();
    for _ in 0..10 {
        flood.roost(["spawn", "--json", "--tasks", "-"]).stdin(json!(tasks).to_string()).run().ok();
    }
    assert_eq!(events.lines(2), ["flood", "flood"]);
    other.spawn("first", r#"echo first >"$F/events"; read x <"$F/gate""#);
    assert_eq!(other.worker("first")["state"], "queued");
    // One slot turns over, and it is the other's, though two hundred stand before it.
    gate.release(1);
    assert_eq!(events.line(), "first");
    flood.roost(["interrupt"]).run().ok();
    other.roost(["interrupt"]).run().ok();
}

#[test]
fn fanout_bomb() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "4", "--budget", "30"]);
    let bomb = r#"for i in 1 2 3 4 5; do roost spawn --descendants rest -- sh "$F/bomb" 2>>"$F/refused" >&2 || true; done"#;
    home.script("bomb", bomb);
    tree.roost(["spawn", "--name", "b0", "--descendants", "rest", "--", "sh"]).arg(home.file("bomb")).run().ok();
    tree.roost(["wait"]).run().ok();
    let status = tree.status();
    let ended = status["workers"].as_array().unwrap().iter().filter(|worker| outcome_of(worker) == "completed").count();
    assert!((5..=30).contains(&ended), "{ended}");
    assert_eq!(ended, status["workers"].as_array().unwrap().len());
    let refused = home.read("refused");
    assert!(refused.contains("trying again is useless"), "{refused}");
    assert_eq!(home.workers().len(), 0);
}

// B06: what is long runs once.
#[test]
fn a_supervisor_that_dies_under_a_running_worker_starts_nothing_twice() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("W1", r#"echo start >>"$F/L"; echo up >"$F/events"; read x <"$F/gate"; echo R1"#);
    assert_eq!(events.line(), "up");
    tree.spawn("W2", r#"echo go >>"$F/M"; echo R2"#);
    let worker = Watched::new(tree.pid("W1"));
    home.kill_daemon();
    assert_eq!(home.roost(["daemon", "start"]).run().ok().code(), 0);
    assert_eq!(tree.worker("W1")["state"], "running");
    assert!(find(worker.process.pid).is_some());
    gate.release(1);
    let result = tree.result("W1");
    // Nobody could wait for it: how it ended is not known, and is not called a success. Its text is kept.
    assert_eq!((&result["outcome"]["kind"], &result["answer"]), (&json!("lost"), &json!("R1\n")));
    assert_eq!(tree.answer("W2"), "R2\n");
    assert_eq!((home.read("L"), home.read("M")), ("start\n".into(), "go\n".into()));
}

/// Fails the n-th write or sync of the journal, once in the life of a home, with EIO.
const EIO: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(int fd, const char *what) {
    static int count;
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (!strstr(path, "/roost.db") || !getenv("NTH") || __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != atoi(getenv("NTH"))) return 0;
    int once = open(getenv("HIT"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (once < 0) return 0;
    if (write(once, what, strlen(what)) < 0 || write(once, path, strlen(path)) < 0) abort();
    close(once);
    errno = EIO;
    return 1;
}
#define REAL(name) static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)
int fsync(int fd) { REAL(fsync); return fails(fd, "sync") ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return fails(fd, "sync") ? -1 : real(fd); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return fails(fd, "write") ? -1 : real(fd, size); }
ssize_t write(int fd, const void *from, size_t size) { REAL(write); return fails(fd, "write") ? -1 : real(fd, from, size); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { REAL(pwrite); return fails(fd, "write") ? -1 : real(fd, from, size, at); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    REAL(pwrite64);
    return fails(fd, "write") ? -1 : real(fd, from, size, at);
}
"#;

/// One life with an error at the n-th write or sync: whatever was acknowledged is there afterwards, once, and who failed has said
/// so. Says what the n-th one was, and of which file; nothing when there was none.
fn with_eio_at(n: usize, shim: &Path) -> String {
    let home = Home::new();
    let daemon = home.command(home.program("roostd")).arg("--detach").env("LD_PRELOAD", shim).env("NTH", n.to_string());
    let started = daemon.env("HIT", home.file("hit")).run();
    if started.code() != 0 {
        // It says why, and starts once the disk works again.
        assert!(started.to_string().contains("roost.db"), "{n}: {started}");
        home.roost(["daemon", "start"]).run().ok();
    }
    let opened = home.roost(["open", "--json"]).run();
    let opened = if opened.code() == 0 { opened } else { home.roost(["open", "--json"]).run().ok() }.json();
    let (id, token) = (opened["tree"].as_str().unwrap().to_owned(), opened["token"].as_str().unwrap().to_owned());
    let roost = |args: &[&str]| home.roost(args).env("ROOST_TREE", &id).env("ROOST_TOKEN", &token).run();
    let spawned = roost(&["spawn", "--name", "w", "--", "sh", "-c", r#"echo go >>"$F/L"; echo R"#]);
    assert_eq!(spawned.code(), 0, "{n}: {spawned}");
    assert_eq!(roost(&["result", "w", "--wait"]).ok().text(), "R\n", "{n}");
    let before_the_end = home.read("hit");
    // The orderly end works the log off, which writes and syncs too. It may fail; what was told stays true.
    let stopped = home.roost(["daemon", "stop", "--timeout", "20s"]).run();
    assert!(matches!(stopped.code(), 0 | 4), "{n}: {stopped}");
    assert_eq!(home.roost(["result", "w", "--tree", &id]).run().ok().text(), "R\n", "{n}");
    assert_eq!(home.read("L"), "go\n", "{n}");
    let hit = home.read("hit");
    let log = home.log();
    // After a failed sync of the log nobody knows what of it is on disk: this broker is over, it says why, and another one looks.
    let is_over = ["error: ", "the journal is broken"].iter().any(|words| log.contains(words));
    let is_sync_of_log = before_the_end.starts_with("sync") && before_the_end.ends_with("-wal");
    assert!(!is_sync_of_log || is_over, "{n}: a failed {hit} was passed over: {log}");
    hit
}

#[test]
fn sync_eio_nth() {
    let home = Home::new();
    let shim = shim(&home, "eio", EIO);
    let next = std::sync::atomic::AtomicUsize::new(1);
    let last = std::sync::atomic::AtomicUsize::new(usize::MAX);
    let syncs = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n > last.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    match with_eio_at(n, &shim).as_str() {
                        "" => drop(last.fetch_min(n, std::sync::atomic::Ordering::Relaxed)),
                        sync if sync.starts_with("sync") => drop(syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
                        _ => {}
                    }
                }
            });
        }
    });
    let (tried, syncs) = (last.into_inner(), syncs.into_inner());
    println!("{tried} writes and syncs, {syncs} of them syncs");
    assert!(syncs > 5, "only {syncs} syncs in a life");
    assert!(tried > 20, "only {tried} writes and syncs in a life: the shim is not in their way");
}
