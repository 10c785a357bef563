//! Starting on demand: once, whoever asks, and with errors that say where to look.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use roost::{Config, Connection, Error, EventReader, Start, Watcher};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, mknodat};
use serde_json::json;

use crate::bounded::{PATIENCE, output, readable};
use crate::fake::{self, Fake};
use crate::peer::Peer;

fn script(dir: &Path, body: &str) -> PathBuf {
    let path = dir.join("roostd");
    fs::write(&path, format!("#!/bin/sh\ndir='{}'\n{body}\n", dir.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn starting(dir: &Path, body: &str) -> Config {
    Config { start: Start::OnDemand, daemon: Some(script(dir, body)), ..fake::config(&dir.join("s")) }
}

/// A named pipe, open at both ends on our side: nobody who opens it blocks.
fn pipe(path: &Path) -> fs::File {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::File::options().read(true).write(true).open(path).unwrap()
}

fn error_of(config: Config) -> Error {
    match Connection::dial(config) {
        Ok(_) => panic!("nobody listens"),
        Err(error) => error,
    }
}

#[test]
fn twenty_clients_start_one_daemon() {
    let dir = tempfile::tempdir().unwrap();
    // The script stands for the process; the listening is done below, once the script has been started. Each waits for the other by a
    // named pipe.
    let body = r#"echo "$*" >>"$dir/started"; echo >"$dir/up"; read -r listens <"$dir/listens"; echo ready"#;
    let config = starting(dir.path(), body);
    let socket = dir.path().join("s");
    let (mut up, mut listens) = (pipe(&dir.path().join("up")), pipe(&dir.path().join("listens")));
    let listener = std::thread::spawn(move || {
        assert!(readable(&up, PATIENCE), "nobody starts the daemon");
        up.read_exact(&mut [0]).unwrap();
        let fake = Fake::start(&socket, |_, _| None);
        listens.write_all(b"\n").unwrap();
        // Open until the end: what is written to a pipe is lost if nobody has it open, and the script may not have yet.
        (fake, listens)
    });
    let clients: Vec<_> =
        (0..20).map(|_| config.clone()).map(|config| std::thread::spawn(move || Connection::dial(config).map(drop))).collect();
    for client in clients {
        client.join().unwrap().unwrap();
    }
    listener.join().unwrap();
    let started = fs::read_to_string(dir.path().join("started")).unwrap();
    let state_dir = config.paths.state_dir.display().to_string();
    assert_eq!(started, format!("--detach --socket {} --state-dir {state_dir}\n", config.paths.socket.display()));
    assert_eq!(config.paths.state_dir.metadata().unwrap().mode() & 0o777, 0o700);
}

/// Whoever waits for the lock has dialled before that, and has to look again.
#[test]
fn a_daemon_that_came_while_the_lock_was_held_is_taken_and_no_unit_takes_its_socket() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { start: Start::OnDemand, by_unit: true, ..fake::config(&dir.path().join("s")) };
    let socket = config.paths.socket.clone();
    // A pipe in the place of the lock file: its reader sees when the client opens it.
    let path = config.paths.start_lock();
    fs::create_dir(&config.paths.state_dir).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let held = rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let client = std::thread::spawn(move || Connection::dial(config).map(drop));
    let (tell, opened) = mpsc::channel();
    std::thread::spawn(move || tell.send(fs::File::open(path).map(drop)));
    opened.recv_timeout(PATIENCE).expect("nobody asks for the lock").unwrap();
    Fake::start(&socket, |_, _| None);
    drop(held);
    client.join().unwrap().unwrap();
}

#[test]
fn a_daemon_that_says_why_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let error = error_of(starting(dir.path(), "echo 'error: the disk is full'; exit 1"));
    assert_eq!((error.kind().as_str(), error.to_string().as_str()), ("daemon_start", "the daemon did not start: the disk is full"));
}

#[test]
fn a_daemon_that_says_nothing_has_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let error = error_of(starting(dir.path(), "exit 1"));
    assert!(error.to_string().contains("without a word"), "{error}");
    assert!(error.hint().unwrap().contains("daemon.log"));
}

#[test]
fn another_daemon_on_the_same_state_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let config = starting(dir.path(), "echo $$ >>\"$dir/tries\"; exit 3");
    fs::create_dir(&config.paths.state_dir).unwrap();
    fs::write(config.paths.lock(), "4711").unwrap();
    let error = error_of(config);
    assert!(error.to_string().contains("4711"), "{error}");
    assert!(error.hint().unwrap().contains("XDG_RUNTIME_DIR"));
    // It may have been about to leave: that was tried more than once.
    assert!(fs::read_to_string(dir.path().join("tries")).unwrap().lines().count() > 1);
}

#[test]
fn a_missing_daemon_is_an_error_that_names_both_places() {
    let dir = tempfile::tempdir().unwrap();
    let roost = dir.path().join("roost");
    fs::copy(env!("CARGO_BIN_EXE_roost"), &roost).unwrap();
    let mut command = std::process::Command::new(&roost);
    command.args(["status", "--socket"]).arg(dir.path().join("s")).env("PATH", "/nowhere").env_remove("ROOST_NO_START");
    let output = output(&mut command);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains(dir.path().to_str().unwrap()) && text.contains("PATH"), "{text}");
}

#[test]
fn nothing_is_started_when_that_is_not_wanted_and_no_socket_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    // What a killed daemon leaves behind.
    drop(UnixListener::bind(&socket).unwrap());
    let config = Config { start: Start::Never, ..starting(dir.path(), "touch \"$dir/started\"") };
    let error = error_of(config);
    assert!(matches!(&error, Error::NoDaemon { .. }) && error.to_string().contains(socket.to_str().unwrap()), "{error}");
    assert!(socket.exists() && !dir.path().join("started").exists());
}

#[test]
fn descriptors_of_ours_stay_ours() {
    let dir = tempfile::tempdir().unwrap();
    let config = starting(dir.path(), "ls -l /proc/$$/fd >\"$dir/fds\"; env >\"$dir/env\"; echo 'error: enough'");
    // A descriptor that a careless parent left open for everybody.
    let path = dir.path().join("left-open");
    let file = fs::File::create(&path).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    error_of(config);
    let open = fs::read_to_string(dir.path().join("fds")).unwrap();
    assert!(open.contains("null") && !open.contains("left-open"), "{open}");
    assert!(!fs::read_to_string(dir.path().join("env")).unwrap().contains("ROOST_TOKEN"));
}

#[test]
fn a_worker_starts_no_daemon_and_waits_for_it_to_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { start: Start::Await, ..starting(dir.path(), "touch \"$dir/started\"") };
    let socket = config.paths.socket.clone();
    let first = UnixListener::bind(&socket).unwrap();
    let dialling = std::thread::spawn(move || Connection::dial(config).map(drop));
    // It has come once, and was shut out; then nobody listens for a while.
    assert!(readable(&first, PATIENCE), "nobody dials");
    drop(first.accept().unwrap());
    drop(first);
    fs::remove_file(&socket).unwrap();
    Fake::start(&socket, |_, _| None);
    dialling.join().unwrap().unwrap();
    assert!(!dir.path().join("started").exists());
}

#[test]
fn who_only_follows_starts_no_daemon_again_and_goes_on_with_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = starting(dir.path(), "touch \"$dir/started\"");
    let page = |next: u64| json!({"tree": "t1", "events": [], "next": next, "end": next});
    for follow in ["events", "watch"] {
        let peer = Peer::new(dir.path());
        let (config, socket) = (config.clone(), peer.socket.clone());
        let following = std::thread::spawn(move || {
            if follow == "watch" {
                let mut watcher = Watcher::new(config)?;
                return [1, 2].into_iter().try_for_each(|live| {
                    assert_eq!(watcher.next_progress()?.live, live);
                    Ok(())
                });
            }
            let mut reader = EventReader::new(Connection::dial(config)?, None, 1, true);
            reader.next_event().map(|event| assert_eq!(event.unwrap().number, 1))
        });
        let mut talk = peer.welcome(json!({})).0;
        talk.answer(follow, if follow == "watch" { fake::progress(1) } else { page(1) });
        fs::remove_file(&socket).unwrap();
        drop((talk, peer));
        // Time for a few dials. One that finds nobody leaves no trace; had it started a daemon, that would be seen below too.
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!dir.path().join("started").exists(), "{follow}");
        let peer = Peer::new(dir.path());
        let mut talk = peer.welcome(json!({})).0;
        let event = json!({"number": 1, "at_ms": 1, "event": "cap_set", "cap": 2});
        talk.answer(
            follow,
            if follow == "watch" { fake::progress(2) } else { json!({"tree": "t1", "events": [event], "next": 2, "end": 2}) },
        );
        following.join().unwrap().unwrap_or_else(|error| panic!("{follow}: {error}"));
        assert!(!dir.path().join("started").exists(), "{follow}");
        fs::remove_file(&socket).unwrap();
    }
}

/// Its socket is there before it is: it reads its journal before it answers.
#[test]
fn a_daemon_that_its_socket_wakes_has_the_time_of_a_start_for_its_first_answer() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |_, _| None);
    let config = |by_unit| Config { by_unit, answer_within: Duration::ZERO, ..fake.config() };
    assert_eq!(error_of(config(false)).kind(), "unanswered");
    let mut connection = Connection::dial(config(true)).unwrap();
    assert_eq!(connection.daemon_status().unwrap_err().kind(), "unanswered");
}
