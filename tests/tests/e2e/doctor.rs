//! `roost doctor` in homes that were damaged on purpose: each check fails once, says which command mends it, and changes nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use roost_tests::real::{Cmd, Home, SmallDisk};
use serde_json::Value;

/// A home with a private state directory and no daemon.
fn prepared() -> Home {
    let home = Home::new();
    fs::DirBuilder::new().mode(0o700).create(home.state_dir()).unwrap();
    home
}

/// One check of what this command finds. The exit code says whether there is anything.
#[track_caller]
fn found(command: Cmd, name: &str) -> (String, String) {
    let done = command.run();
    let findings = done.json();
    let checks = findings["checks"].as_array().unwrap();
    let is_ok = checks.iter().all(|check| check["level"] == "ok");
    assert_eq!((findings["ok"].as_bool().unwrap(), done.code()), (is_ok, i32::from(!is_ok)), "{findings}");
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {findings}"));
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    // What is wrong with a place says all there is to do.
    assert_eq!(check["level"] == "ok" || name == "places", check["mend"] == Value::Null, "{check}");
    (text("level"), text("mend"))
}

#[track_caller]
fn finds(home: &Home, name: &str, level: &str, mend: &str) {
    assert_eq!(found(home.roost(["doctor", "--json"]), name), (level.to_owned(), mend.to_owned()));
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn where_nothing_is_wrong_it_ends_with_0_and_starts_nothing() {
    let home = Home::new();
    let shown = home.roost(["doctor"]).run().ok();
    assert!(shown.text().lines().all(|line| line.starts_with("ok ")), "{}", shown.text());
    assert!(!home.state_dir().exists());
    home.start_daemon(&[]);
    home.roost(["doctor"]).run().ok();
    home.roost(["daemon", "stop"]).run().ok();
    home.roost(["doctor"]).run().ok();
    assert!(!home.socket().exists());
}

#[test]
fn what_is_in_the_place_of_the_socket_is_named() {
    let home = prepared();
    let socket = home.socket();
    fs::write(&socket, "").unwrap();
    finds(&home, "socket", "error", &format!("mv {} {}", socket.display(), socket.with_extension("moved-away").display()));
    fs::remove_file(&socket).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    fs::write(home.state_dir().join("lock"), "4000000000\n").unwrap();
    finds(&home, "socket", "warning", "roost daemon start");
    finds(&home, "lock", "warning", "roost daemon start");
    home.start_daemon(&[]);
    home.roost(["doctor"]).run().ok();
    let (level, _) = found(home.roost(["doctor", "--json"]).env("ROOST_SOCKET", "not/absolute"), "places");
    assert_eq!(level, "error");
}

#[test]
fn a_daemon_that_listens_elsewhere_and_one_that_the_lock_does_not_name_are_found() {
    let home = Home::new();
    let pid = home.start_daemon(&[]).supervisor;
    let elsewhere = home.roost(["doctor", "--json", "--socket"]).arg(home.state_dir().join("other.sock"));
    assert_eq!(found(elsewhere, "lock"), ("error".into(), format!("kill {pid}")));
    fs::write(home.state_dir().join("lock"), "4000000000\n").unwrap();
    finds(&home, "lock", "warning", "roost daemon stop");
}

#[test]
fn a_number_that_another_daemon_has_by_now_is_nobody_to_be_killed() {
    let (home, other) = (prepared(), Home::new());
    let pid = other.start_daemon(&[]).supervisor;
    fs::write(home.state_dir().join("lock"), format!("{pid}\n")).unwrap();
    finds(&home, "lock", "ok", "");
    drop(UnixListener::bind(home.socket()).unwrap());
    finds(&home, "lock", "warning", "roost daemon start");
}

/// It may be slow, or read a long journal: that it does not listen is not known.
#[test]
fn a_daemon_that_does_not_answer_is_not_to_be_killed_for_its_lock() {
    let home = Home::new();
    home.start_daemon(&[]);
    let other = home.file("other.sock");
    let listener = UnixListener::bind(&other).unwrap();
    // Whoever it is does not speak our protocol.
    let speaking = std::thread::spawn(move || {
        for peer in listener.incoming().take(2) {
            let mut peer = BufReader::new(peer.unwrap());
            peer.read_line(&mut String::new()).unwrap();
            peer.get_mut().write_all(b"what?\n").unwrap();
        }
    });
    let doctor = || home.roost(["doctor", "--json", "--socket"]).arg(&other);
    assert_eq!(found(doctor(), "socket").0, "error");
    assert_eq!(found(doctor(), "lock"), ("ok".into(), String::new()));
    speaking.join().unwrap();
}

#[test]
fn directories_that_others_may_read_are_found_and_the_command_mends_them() {
    let home = prepared();
    for (name, path) in [("state", home.state_dir()), ("socket-dir", home.file("open"))] {
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let doctor = || home.roost(["doctor", "--json"]).env("ROOST_SOCKET", home.file("open").join("s"));
        let mend = format!("chmod 700 {}", path.display());
        assert_eq!(found(doctor(), name), ("error".into(), mend.clone()));
        home.sh(&mend).run().ok();
        assert_eq!(found(doctor(), name).0, "ok");
    }
    let home = Home::new();
    fs::write(home.state_dir(), "").unwrap();
    assert_eq!(found(home.roost(["doctor", "--json"]), "state").0, "error");
}

#[test]
fn limits_that_are_too_low_are_found() {
    let home = prepared();
    for (name, limit) in [("open-files", "ulimit -n 200"), ("processes", "ulimit -u 400")] {
        // Not every shell has both.
        let limited = home.command("bash").args(["-c", &format!("{limit} && exec roost doctor --json")]);
        assert_eq!(found(limited, name).0, "warning");
    }
}

#[test]
fn a_large_journal_copies_of_it_and_a_full_disk_are_found() {
    let home = prepared();
    fs::File::create(home.state_dir().join("roost.db")).unwrap().set_len(2 << 30).unwrap();
    finds(&home, "journal", "warning", "roost gc --older-than 7d");
    let copy = home.state_dir().join("roost.db.damaged-1");
    fs::write(&copy, "").unwrap();
    finds(&home, "copies", "warning", &format!("rm {}", copy.display()));
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home.state_dir(), 4_096) else { return };
    finds(&home, "disk", "error", &format!("du -sh {}/*", home.state_dir().display()));
}

#[test]
fn a_daemon_that_is_missing_another_or_replaced_is_found() {
    let home = prepared();
    let folder = home.file("bin");
    fs::create_dir(&folder).unwrap();
    let (roost, roostd) = (folder.join("roost"), folder.join("roostd"));
    fs::copy(home.program("roost"), &roost).unwrap();
    let doctor = || home.command(&roost).args(["doctor", "--json"]).env("PATH", "/nowhere");
    assert_eq!(found(doctor(), "program"), ("error".into(), "cargo install --path daemon".into()));
    program(&roostd, "#!/bin/sh\necho roostd 0.0.1\n");
    assert_eq!(found(doctor(), "program").0, "warning");
    program(&roostd, "#!/bin/sh\nexit 1\n");
    assert_eq!(found(doctor(), "program").0, "error");
    fs::copy(home.program("roostd"), &roostd).unwrap();
    home.command(&roost).args(["daemon", "start"]).run().ok();
    assert_eq!(found(doctor(), "versions").0, "ok");
    fs::remove_file(&roostd).unwrap();
    fs::copy(home.program("roostd"), &roostd).unwrap();
    assert_eq!(found(doctor(), "versions"), ("warning".into(), "roost daemon restart".into()));
    home.command(&roost).args(["daemon", "restart"]).run().ok();
    assert_eq!(found(doctor(), "versions"), ("warning".into(), "roost daemon stop && roost daemon start".into()));
    home.command(&roost).args(["daemon", "stop"]).run().ok();
}

#[test]
fn units_that_are_given_up_and_a_user_who_does_not_linger_are_found_and_nothing_is_woken() {
    let home = Home::new();
    let (bin, units, runtime) = (home.file("bin"), home.file("config/systemd/user"), home.file("run"));
    [&bin, &units].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    fs::DirBuilder::new().mode(0o700).create(&runtime).unwrap();
    fs::write(units.join("roostd.socket"), "").unwrap();
    program(&bin.join("loginctl"), "#!/bin/sh\necho no\n");
    let manager = |socket: &str, result: &str| {
        let cases = format!("ActiveState) echo {socket};; Result) echo {result};; MainPID) echo 0;;");
        program(&bin.join("systemctl"), &format!("#!/bin/sh\ncase \"$5\" in {cases} esac\n"));
    };
    let doctor = || {
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let command = home.roost(["doctor", "--json"]).without("ROOST_STATE_DIR").env("PATH", path);
        command.env("XDG_RUNTIME_DIR", &runtime).env("XDG_CONFIG_HOME", home.file("config"))
    };
    manager("active", "success");
    assert_eq!(found(doctor(), "linger"), ("warning".into(), "loginctl enable-linger".into()));
    assert_eq!(found(doctor(), "service").0, "ok");
    // A connection would start the daemon.
    fs::create_dir(runtime.join("roost")).unwrap();
    let listener = UnixListener::bind(runtime.join("roost/roost.sock")).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(found(doctor(), "socket").0, "ok");
    assert!(listener.accept().is_err());
    manager("inactive", "success");
    drop(listener);
    assert_eq!(found(doctor(), "service"), ("error".into(), "systemctl --user enable --now roostd.socket".into()));
    manager("failed", "start-limit-hit");
    assert!(found(doctor(), "service").1.starts_with("systemctl --user reset-failed"));
    program(&bin.join("systemctl"), "#!/bin/sh\necho no bus >&2\nexit 1\n");
    assert_eq!(found(doctor(), "service").0, "error");
}
