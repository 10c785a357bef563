//! A broker, or a whole daemon, that starts on a disk without any room, its ballast gone as well: it serves who looks, refuses new
//! work, keeps the ends of what runs, and records them when there is room. Nothing has to be started again for it.

use roost_tests::real::{Home, SmallDisk, Tree, Watched, by_name, journal_file, outcome_of};
use rustix::process::Signal;
use serde_json::json;

/// Two that have ended, one of them told of, one that runs and one that is queued; then the disk is full to the last byte.
fn scene(home: &Home) -> (Tree<'_>, Watched) {
    let tree = Tree::open(home, &["--cap", "1"]);
    tree.spawn("told", "printf told");
    assert_eq!(tree.answer("told"), "told");
    tree.spawn("untold", "printf untold");
    tree.until_state("untold", "ended");
    let mut events = home.fifo("events");
    tree.spawn("runs", r#"printf said; echo up >"$F/events"; read x <"$F/gate"; exit 7"#);
    assert_eq!(events.line(), "up");
    let worker = Watched::new(tree.pid("runs"));
    tree.spawn("queued", "printf later");
    (tree, worker)
}

/// While there is no broker: what is left in the log would be room.
fn fill(home: &Home, disk: &SmallDisk) {
    let journal = rusqlite::Connection::open(journal_file(home)).unwrap();
    journal.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    drop(journal);
    std::fs::remove_file(home.state_dir().join("ballast")).unwrap();
    disk.fill_up_to(0);
}

/// What a daemon without any room still does.
fn reads_work_and_launches_do_not(tree: &Tree<'_>) {
    let status = tree.status();
    let state = |name: &str| by_name(&status, name)["state"].as_str().unwrap().to_owned();
    assert_eq!(["told", "untold", "runs", "queued"].map(state), ["ended", "ended", "running", "queued"], "{status}");
    for name in ["told", "untold", "untold"] {
        let result = tree.roost(["result", name, "--json"]).run().ok().json();
        assert_eq!(result["answer"], name, "{result}");
    }
    let refusal = tree.roost(["spawn", "--json", "--", "true"]).run().expect(1).json();
    assert_eq!(refusal["error"]["kind"], "no_space", "{refusal}");
}

/// And what comes of it when there is room: each end is told of once.
fn all_is_recorded(tree: &Tree<'_>, runs: &str) {
    let end = tree.until_state("runs", "ended");
    assert_eq!(outcome_of(&end), runs, "{end}");
    assert_eq!(tree.answer("queued"), "later");
    let told = tree.roost(["wait", "--json"]).run().json();
    let mut names: Vec<&str> = told["ended"].as_array().unwrap().iter().map(|end| end["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    // Whether the reading of `untold` could be recorded after all is a matter of what came first; it is not told twice.
    names.retain(|name| *name != "untold");
    assert_eq!(names, ["runs"], "{told}");
    assert_eq!(tree.roost(["wait", "--json"]).run().json()["ended"], json!([]));
    assert_eq!(tree.roost(["result", "runs", "--json"]).run().json()["answer"], "said");
}

#[test]
fn a_broker_that_starts_without_any_room_serves_and_records_later() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home.state_dir(), 48 << 10) else { return };
    let mut gate = home.fifo("gate");
    let (tree, worker) = scene(&home);
    let before = home.daemon();
    let supervisor = Watched::new(before.supervisor);
    supervisor.signal(Signal::STOP);
    Watched::new(before.broker).kill();
    fill(&home, &disk);
    // It ends while there is no broker to write that down.
    gate.release(1);
    worker.await_end();
    supervisor.signal(Signal::CONT);
    reads_work_and_launches_do_not(&tree);
    let pids = home.daemon();
    assert_eq!(pids.supervisor, before.supervisor);
    disk.make_room();
    all_is_recorded(&tree, "exit");
    assert_eq!(home.daemon(), pids);
}

#[test]
fn a_daemon_that_starts_without_any_room_serves_and_records_later() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home.state_dir(), 48 << 10) else { return };
    let mut gate = home.fifo("gate");
    let (tree, worker) = scene(&home);
    home.kill_daemon();
    fill(&home, &disk);
    gate.release(1);
    worker.await_end();
    home.roost(["daemon", "start"]).run().ok();
    reads_work_and_launches_do_not(&tree);
    let pids = home.daemon();
    disk.make_room();
    // Nobody saw its exit; its text is kept.
    all_is_recorded(&tree, "lost");
    assert_eq!(home.daemon(), pids);
}

#[test]
fn what_ends_later_on_a_disk_without_room_is_recorded_too() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home.state_dir(), 48 << 10) else { return };
    let mut gate = home.fifo("gate");
    let (tree, worker) = scene(&home);
    let pids = home.daemon();
    let supervisor = Watched::new(pids.supervisor);
    supervisor.signal(Signal::STOP);
    Watched::new(pids.broker).kill();
    fill(&home, &disk);
    supervisor.signal(Signal::CONT);
    // The first turn had nothing to write, but a reading has.
    reads_work_and_launches_do_not(&tree);
    gate.release(1);
    worker.await_end();
    reads_work_and_launches_do_not(&tree);
    let pids = home.daemon();
    disk.make_room();
    all_is_recorded(&tree, "exit");
    assert_eq!(home.daemon(), pids);
}
