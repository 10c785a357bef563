//! Starting and finding the daemon: one of it, whatever races, was killed, stands still, or is named by a long path.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use roost_tests::real::{Home, Tree, Watched, is_root, is_up};
use rustix::process::Signal;
use serde_json::json;

// B02 (a).
#[test]
fn twenty_clients_that_race_start_one_daemon() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let script = r#"echo up >"$F/events"; read x <"$F/gate"
        eval "$(roost open --key race --cap 20)" && roost spawn --name "n$0" -- echo "$0" >&2 && roost result "n$0" --wait"#;
    let clients: Vec<_> = (0..20).map(|number| home.sh(script).arg(number.to_string()).start()).collect();
    events.lines(20);
    gate.release(20);
    for (number, client) in clients.into_iter().enumerate() {
        assert_eq!(client.end().ok().text(), format!("{number}\n"));
    }
    let (supervisors, brokers) = home.daemons();
    assert_eq!((supervisors.len(), brokers.len()), (1, 1));
    let trees = home.roost(["status", "--json"]).run().ok().json()["trees"].clone();
    let [tree] = trees.as_array().unwrap().as_slice() else { panic!("{trees}") };
    let status = home.roost(["status", "--json", "--tree", tree["tree"].as_str().unwrap()]).run().ok().json();
    assert_eq!(status["workers"].as_array().unwrap().len(), 20);
}

// B02 (b).
#[test]
fn a_daemon_that_stands_still_is_not_replaced() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "exec sleep 600");
    let pids = home.daemon();
    let inode = home.socket().metadata().unwrap().ino();
    let both = [pids.supervisor, pids.broker].map(Watched::new);
    both.iter().for_each(|process| process.signal(Signal::STOP));
    for _ in 0..2 {
        let done = home.command(home.program("roostd")).arg("--detach").within(Duration::from_secs(10)).run().expect(3);
        let said = format!("{}{}", done.text(), done.err());
        assert!(said.contains(&pids.supervisor.to_string()), "{done}");
    }
    both.iter().for_each(|process| process.signal(Signal::CONT));
    assert_eq!((home.daemon(), home.socket().metadata().unwrap().ino()), (pids, inode));
    assert_eq!((home.daemons().0.len(), is_up(&tree.worker("w"))), (1, true));
}

// B01.
#[test]
fn a_socket_that_a_killed_daemon_left_behind_fools_nobody() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", r#"echo up >"$F/events"; exec sleep 300"#);
    assert_eq!(events.line(), "up");
    let pid = tree.pid("w");
    home.kill_daemon();
    assert!(home.socket().exists());
    // (a)
    let done = home.roost(["status", "--no-start"]).within(Duration::from_secs(5)).run().expect(4);
    assert!(done.err().contains(home.socket().to_str().unwrap()) && done.took < Duration::from_secs(2), "{done}");
    // (c) the worker holds nothing that a second daemon needs.
    let open = Watched::new(pid).process.descriptors();
    let state_dir = home.state_dir();
    for descriptor in &open {
        let harmless = descriptor == "/dev/null" || Path::new(descriptor).starts_with(state_dir.join("executions"));
        assert!(harmless, "{open:?}");
    }
    // (b)
    for _ in 0..5 {
        home.roost(["status"]).run().ok();
    }
    assert_eq!((home.daemons().0.len(), home.daemons().1.len()), (1, 1));
    let worker = tree.worker("w");
    assert_eq!((&worker["state"], &worker["pid"]), (&json!("running"), &json!(pid)));
}

/// A path of exactly so many bytes below a directory, with this as much of it as possible.
fn path_of(below: &Path, bytes: usize, unit: &str) -> PathBuf {
    let room = bytes - below.as_os_str().len() - 1 - "/s".len();
    let wide = (room / unit.len()).min(40);
    let path = below.join(unit.repeat(wide) + &"x".repeat(room - wide * unit.len())).join("s");
    assert_eq!(path.as_os_str().len(), bytes);
    path
}

// B03.
#[test]
fn a_socket_path_may_have_107_bytes() {
    for unit in ["a", "é"] {
        let home = Home::new();
        let socket = path_of(home.dir(), 107, if unit == "é" { "é" } else { "a" });
        let with = |args: &[&str]| home.roost(args).env("ROOST_SOCKET", &socket).run();
        assert_eq!(with(&["run", "--", "echo", "works"]).ok().text(), "works\n");
        assert_eq!(with(&["daemon", "status", "--json"]).ok().json()["socket"], socket.to_str().unwrap());
        // One byte more is refused by client and daemon, in words.
        let long = path_of(home.dir(), 108, unit);
        let done = home.roost(["status"]).env("ROOST_SOCKET", &long).run().expect(2);
        let daemon = home.command(home.program("roostd")).env("ROOST_SOCKET", &long).run();
        assert_ne!(daemon.code(), 0);
        for done in [done, daemon] {
            let said = done.err();
            assert!(["108", "107", long.to_str().unwrap()].iter().all(|part| said.contains(part)), "{done}");
            assert!(done.took < Duration::from_secs(2), "{done}");
        }
    }
}

// B03 (d).
#[test]
fn long_paths_that_begin_alike_never_meet() {
    let home = Home::new();
    for end in ["A", "B"] {
        let mut path = home.dir().join("y".repeat(110)).into_os_string();
        path.push(end);
        let done = home.roost(["run", "--", "true"]).env("ROOST_STATE_DIR", &path).run().expect(2);
        assert!(done.err().contains("107"), "{done}");
    }
    assert!(home.daemons().0.is_empty());
}

// B05 (e), and contract section 14.
#[test]
fn directories_and_socket_are_private_whatever_the_umask() {
    let home = Home::new();
    home.sh("umask 000; roost run -- true").run().ok();
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(home.state_dir()), mode(home.socket())), (0o700, 0o600));
    for name in ["roost.db", "lock", "daemon.log"] {
        assert_eq!(mode(home.state_dir().join(name)) & 0o077, 0, "{name}");
    }
}

// B05 (a), (c).
#[test]
fn without_variables_the_documented_places_are_used() {
    let home = Home::new();
    let bare = |args: &[&str]| home.roost(args).without("ROOST_STATE_DIR").env("XDG_RUNTIME_DIR", home.file("run"));
    std::fs::create_dir(home.file("run")).unwrap();
    std::fs::set_permissions(home.file("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
    bare(&["run", "--", "true"]).run().ok();
    let status = bare(&["daemon", "status", "--json"]).run().ok().json();
    assert_eq!(status["socket"], home.file("run/roost/roost.sock").to_str().unwrap());
    assert_eq!(status["state_dir"], home.file("home/.local/state/roost").to_str().unwrap());
    // Another runtime directory, the same state: no second daemon, and the reason in words.
    let done = bare(&["daemon", "start"]).env("XDG_RUNTIME_DIR", home.file("run2")).run().expect(4);
    assert!(done.err().contains("XDG_RUNTIME_DIR") && done.err().contains(&status["supervisor_pid"].to_string()), "{done}");
    assert_eq!(home.daemons().0.len(), 1);
    bare(&["daemon", "stop"]).run().ok();
}

// B05 (b).
#[test]
fn another_users_runtime_directory_is_refused_by_name() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    std::fs::create_dir(home.file("theirs")).unwrap();
    std::os::unix::fs::chown(home.file("theirs"), Some(4242), None).unwrap();
    let done = home.roost(["status"]).without("ROOST_STATE_DIR").env("XDG_RUNTIME_DIR", home.file("theirs")).run().expect(2);
    assert!(done.err().contains("XDG_RUNTIME_DIR") && done.err().contains("4242"), "{done}");
    assert!(home.daemons().0.is_empty());
}

#[test]
fn a_refused_start_names_what_was_given_and_leaves_no_directories() {
    let home = Home::new();
    let roostd = || home.command(home.program("roostd"));
    for detach in [&[][..], &["--detach"]] {
        let done = roostd().args(detach).args(["--state-dir", "rel"]).run().expect(78);
        assert!(format!("{}{}", done.text(), done.err()).contains("error: --state-dir must be an absolute path"), "{done}");
        let done = roostd().args(detach).env("ROOST_STATE_DIR", "rel").run().expect(78);
        assert!(format!("{}{}", done.text(), done.err()).contains("error: ROOST_STATE_DIR must be an absolute path"), "{done}");
    }
    let done = home.roost(["--state-dir", "rel", "status"]).run();
    assert!(done.code() != 0 && done.err().contains("--state-dir must be an absolute path"), "{done}");
    // Refused after its directories were made: by the socket's directory, by what is in the place of the socket, by the cgroup.
    let letter = home.script("letter", "");
    let refused: [&[&str]; 3] = [&["--socket", "/proc/none/sock"], &["--socket", letter.to_str().unwrap()], &["--cgroup", "/proc"]];
    for flags in refused {
        for detach in [&[][..], &["--detach"]] {
            let done = roostd().args(detach).args(["--state-dir"]).arg(home.file("new/state")).args(flags).run().expect(78);
            assert!(!home.file("new").exists(), "{flags:?} {detach:?}: {done}");
        }
    }
}

#[test]
fn a_broker_that_stands_still_without_its_supervisor_does_not_keep_the_next_daemon_out() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut events = home.fifo("events");
    let mut gate = home.fifo("gate");
    tree.spawn("w", r#"echo up >"$F/events"; read x <"$F/gate""#);
    assert_eq!(events.line(), "up");
    let pids = home.daemon();
    let broker = Watched::new(pids.broker);
    broker.signal(Signal::STOP);
    Watched::new(pids.supervisor).kill();
    // The start kills it, once it has had its time to go by itself.
    home.start_daemon(&[]);
    broker.await_end();
    assert!(is_up(&tree.worker("w")));
    gate.release(1);
    tree.roost(["result", "w", "--wait"]).run().expect(1);
}
