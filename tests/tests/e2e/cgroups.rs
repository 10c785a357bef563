//! With a cgroup per worker: nothing that forked away, changed its session and cleared its environment outlives a stop, a worker
//! or a supervisor, and no cgroup is left over. Where no cgroup2 directory can be made, each says so and ends.

use std::time::Duration;

use roost_tests::real::{CgroupDirectory, Home, Process, Tree, UserManager, Watched, find, outcome_of};

/// Leaves parents, session and environment, then says its pid and ignores TERM: no search but that in a cgroup finds it.
const AWAY: &str = r#"(env -i F="$F" setsid sh -c 'trap "" TERM HUP; echo $$ >"$F/events"; while :; do /bin/sleep 600; done' &)"#;

/// The daemon with cgroups in this directory, and a tree.
fn open<'a>(home: &'a Home, cgroups: &CgroupDirectory, flags: &[&str]) -> Tree<'a> {
    home.roost(["daemon", "start", "--cgroup", cgroups.text()]).run().ok();
    Tree::open(home, flags)
}

fn process(pid: &str) -> Process {
    find(pid.parse().unwrap()).unwrap()
}

#[test]
fn a_stop_reaches_what_hides_from_every_other_search() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = open(&home, &cgroups, &["--cap", "1", "--stop-grace", "300ms"]);
    tree.spawn("w", &format!("trap '' TERM; {AWAY}; {AWAY}; while :; do sleep 600; done"));
    let away: Vec<Process> = events.lines(2).iter().map(|pid| process(pid)).collect();
    assert_eq!(cgroups.names().len(), 1);
    // Takes its place the moment the slot is free, and looks whether they are gone.
    let looks = format!("kill -0 {} 2>/dev/null || kill -0 {} 2>/dev/null || printf alone", away[0].pid, away[1].pid);
    assert_eq!(tree.spawn("next", &looks)["status"], "queued");
    let done = tree.roost(["stop", "w"]).run().ok();
    assert!(done.took < Duration::from_secs(10), "{done}");
    assert!(away.iter().all(|process| !process.lives_on()));
    assert_eq!(tree.answer("next"), "alone");
    assert_eq!((outcome_of(&tree.worker("w")), cgroups.names()), ("stopped", Vec::new()));
}

#[test]
fn a_slot_is_free_only_when_the_cgroup_is_empty() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = open(&home, &cgroups, &["--cap", "1"]);
    tree.spawn("leaves", &format!(r#"{AWAY}; read x <"$F/gate"; printf done"#));
    let away = process(&events.line());
    assert_eq!(tree.spawn("next", &format!("kill -0 {} 2>/dev/null || printf alone", away.pid))["status"], "queued");
    gate.release(1);
    assert_eq!((tree.answer("leaves").as_str(), tree.answer("next").as_str()), ("done", "alone"));
    assert!(!away.lives_on() && cgroups.names().is_empty());
}

#[test]
fn a_fork_bomb_ends_at_once() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = open(&home, &cgroups, &["--cap", "1", "--stop-grace", "200ms"]);
    // Each runs on in two others that leave session and environment behind; 2^9 at most, all deaf to TERM.
    let bomb = home.script(
        "bomb.sh",
        r#"trap '' TERM HUP; [ "$1" = 4 ] && echo deep >"$F/events"
        [ "$1" = 0 ] && exec /bin/sleep 600
        for half in 1 2; do (env -i F="$F" PATH=/bin:/usr/bin setsid sh "$0" $(($1 - 1)) &); done
        exec sleep 600"#,
    );
    tree.spawn("bomb", &format!("exec sh {} 8", bomb.display()));
    events.lines(4);
    let done = tree.roost(["stop", "bomb"]).run().ok();
    assert!(done.took < Duration::from_secs(15), "{done}");
    let word = bomb.as_os_str().as_encoded_bytes();
    let is_bomb = |process: &Process| process.arguments().iter().any(|argument| argument == word);
    assert_eq!(roost_tests::real::all().iter().filter(|process| process.is_alive() && is_bomb(process)).count(), 0);
    assert_eq!((cgroups.names(), home.zombies()), (Vec::new(), 0));
}

#[test]
fn the_next_supervisor_finds_the_cgroups_of_the_one_that_was_killed() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = open(&home, &cgroups, &["--cap", "3", "--stop-grace", "300ms"]);
    tree.spawn("stopped", &format!("{AWAY}; sleep 600"));
    let stopped = process(&events.line());
    tree.spawn("leaves", &format!(r#"{AWAY}; read x <"$F/gate""#));
    let left = process(&events.line());
    // This one is gone by the time somebody looks.
    tree.spawn("gone", &format!("{AWAY}; exec sleep 600"));
    let behind = process(&events.line());
    let gone = Watched::new(tree.pid("gone"));
    home.kill_supervisor();
    gone.kill();
    assert_eq!(cgroups.names().len(), 3);
    let supervisor = home.roost(["daemon", "start", "--cgroup", cgroups.text()]).run().ok();
    assert!(supervisor.text().starts_with("started"), "{supervisor}");
    tree.result("gone");
    assert!(!behind.lives_on());
    tree.roost(["stop", "stopped"]).run().ok();
    assert!(!stopped.lives_on());
    gate.release(1);
    tree.result("leaves");
    assert!(!left.lives_on() && cgroups.names().is_empty(), "{:?}", cgroups.names());
}

#[test]
fn kept_leftovers_live_on_and_their_cgroup_goes_with_them() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let mut events = home.fifo("events");
    home.roost(["daemon", "start", "--cgroup", cgroups.text()]).run().ok();
    let tree = Tree::open(&home, &["--cap", "1", "--leftovers", "keep"]);
    let leaves = r#"(env -i F="$F" setsid sh -c 'echo $$ >"$F/events"; exec /bin/sleep 600' &); printf done"#;
    tree.spawn("leaves", leaves);
    let away = Watched::new(events.line().parse().unwrap());
    assert_eq!(tree.answer("leaves"), "done");
    tree.spawn("next", "printf next");
    assert_eq!(tree.answer("next"), "next");
    assert!(away.process.lives_on());
    assert_eq!(cgroups.names().len(), 1);
    away.kill();
    cgroups.await_none();
}

#[test]
fn a_daemon_that_a_worker_starts_is_no_part_of_the_worker() {
    let Some(cgroups) = CgroupDirectory::make() else { return };
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = open(&home, &cgroups, &["--stop-grace", "300ms"]);
    let start = format!(r#"read x <"$F/gate"; roost daemon start --cgroup {} >&2; echo up >"$F/events"; exec sleep 600"#, cgroups.text());
    let mut gate = home.fifo("gate");
    tree.spawn("starts", &start);
    tree.pid("starts");
    home.kill_supervisor();
    gate.release(1);
    assert_eq!(events.line(), "up");
    let pids = home.daemon();
    tree.roost(["stop", "starts"]).run().ok();
    assert_eq!((home.daemon(), outcome_of(&tree.worker("starts"))), (pids, "stopped"));
    assert_eq!(cgroups.names(), Vec::<String>::new());
}

#[test]
fn a_directory_that_cannot_be_used_is_refused_by_name() {
    let home = Home::new();
    for (directory, reason) in [(home.dir().to_str().unwrap(), "not on a cgroup2 file system"), ("/no/such/place", "No such file")] {
        let done = home.command(home.program("roostd")).args(["--cgroup", directory]).run().expect(78);
        assert!(done.err().contains(directory) && done.err().contains(reason) && done.err().contains("--cgroup off"), "{done}");
        let done = home.roost(["daemon", "start", "--cgroup", directory]).run();
        assert!(done.code() != 0 && done.err().contains(reason), "{done}");
    }
    let done = home.roost(["daemon", "start", "--cgroup", "here"]).run().expect(2);
    assert!(done.err().contains("absolute path"), "{done}");
    assert!(home.daemons().0.is_empty());
}

#[test]
fn a_cgroup_that_is_marked_as_delegated_is_used_and_another_is_not() {
    for mark in [false, true] {
        let Some(cgroups) = CgroupDirectory::make() else { return };
        if mark {
            rustix::fs::setxattr(cgroups.path(), "user.delegate", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        }
        let home = Home::new();
        home.sh(r#"echo $$ >"$1/cgroup.procs"; roost daemon start"#).arg("sh").arg(cgroups.path()).run().ok();
        let mut events = home.fifo("events");
        let tree = Tree::open(&home, &["--stop-grace", "300ms"]);
        tree.spawn("w", r#"echo up >"$F/events"; sleep 600"#);
        assert_eq!((events.line().as_str(), cgroups.names().len()), ("up", usize::from(mark)));
        tree.roost(["stop", "w"]).run().ok();
        assert_eq!(cgroups.names(), Vec::<String>::new());
    }
}

#[test]
fn a_service_whose_cgroup_is_delegated_by_a_user_manager_works_in_it() {
    let home = Home::new();
    let Some(manager) = UserManager::new(&home) else { return };
    let unit = |name: &str, delegate: &str, cgroup: &str| {
        let (program, state) = (home.program("roostd"), home.file(&name[..1]));
        let start = format!("{} --idle-exit 0 --state-dir {} --cgroup {cgroup}", program.display(), state.display());
        manager.unit(name, &format!("[Service]\nType=notify\nExecStart={start}\nDelegate={delegate}\nTimeoutStopSec=10\n"));
    };
    unit("given.service", "yes", "own");
    unit("plain.service", "no", "auto");
    let script = format!(
        r#"set -e
        for service in given plain; do
            systemctl --user start $service.service
            sed "s/^/$service supervisor /" /proc/$(systemctl --user show -P MainPID $service.service)/cgroup
            export ROOST_STATE_DIR="$F/$(echo $service | cut -c1)"
            roost run -- sh -c "sed 's/^/$service worker /' /proc/self/cgroup"
        done
        export ROOST_STATE_DIR="$F/g"
        mkfifo "$F/events"
        roost run -- sh -c '{AWAY_QUOTED}; read pid <"$F/events"; echo $pid'  >"$F/pid"
        kill -0 $(cat "$F/pid") && echo still there
        echo left: $(find /sys/fs/cgroup -name 'roost-*')
        systemctl --user stop given.service plain.service"#,
        AWAY_QUOTED = AWAY.replace('\'', r"'\''"),
    );
    let done = manager.run(&script);
    let said = home.read("said");
    assert_eq!(done.code(), 0, "{done}");
    let line = |beginning: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(beginning)?.trim().strip_prefix("0::"));
        found.unwrap_or_else(|| panic!("no {beginning} in {said}")).to_owned()
    };
    let (supervisor, worker) = (line("given supervisor"), line("given worker"));
    assert!(supervisor.ends_with("/given.service") && worker.starts_with(&format!("{supervisor}/roost-")), "{said}");
    assert_eq!(line("plain worker"), line("plain supervisor"));
    assert!(said.contains("No such process") && !said.contains("still there") && said.contains("left:\n"), "{said}");
}
