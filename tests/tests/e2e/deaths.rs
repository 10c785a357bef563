//! `kill -9` of broker, supervisor, worker and client, in the middle of things and at each moment of a life.

use std::collections::BTreeSet;
use std::time::Duration;

use roost_tests::block_on::block_on;
use roost_tests::real::{Home, Tree, Watched, Wire, by_name, is_up, outcome_of};
use roostd::journal::{Batch, ClockMark, Journal};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn the_broker_may_die_again_and_again_in_the_middle_of_the_main_job() {
    let home = Home::new();
    // 1 + 8 + 64 directories with a file each.
    let top = home.file("tree");
    let (mut directories, mut files) = (0, 0);
    for a in 0..8 {
        for b in 0..8 {
            let leaf = top.join(format!("a {a}/b{b}"));
            std::fs::create_dir_all(&leaf).unwrap();
            std::fs::write(leaf.join("file"), "line\n".repeat(a + b)).unwrap();
            (directories, files) = (directories + 1, files + 1);
        }
        directories += 1;
    }
    std::fs::write(top.join("largest"), "x\n".repeat(1_000)).unwrap();
    let lines: usize = (0..8).flat_map(|a| (0..8).map(move |b| a + b)).sum::<usize>() + 1_000;
    let supervisor = home.start_daemon(&[]).supervisor;
    let (mut trees, mut go) = (home.fifo("trees"), home.fifo("go"));
    go.release(1);
    let run = home
        .roost(["run", "--cap", "3", "--budget", "100", "--", "sh", "-c", crate::tally::TELLS])
        .arg(home.program("examples/tally"))
        .arg(&top)
        .within(Duration::from_secs(90))
        .start();
    let tree = trees.line();
    for done in [1, 10, 20, 30, 40, 50, 60] {
        await_completed(&home, &tree, done);
        home.kill_broker();
    }
    let done = run.end_within(Duration::from_secs(90)).ok();
    let bytes = (lines - 1_000) * 5 + 2_000;
    let expected = format!("files {}\nlines {lines}\nbytes {bytes}\nlargest {}\n", files + 1, top.join("largest").display());
    assert_eq!((done.text(), done.err().as_str()), (expected.as_str(), ""));
    assert_eq!(home.daemon().supervisor, supervisor);
    // Every directory was one worker with one execution.
    let status = home.roost(["status", "--json", "--tree", &tree]).run().ok().json();
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.len(), directories + 1);
    assert!(workers.iter().all(|worker| outcome_of(worker) == "completed"), "{status}");
    let executions: BTreeSet<&str> = workers.iter().map(|worker| worker["execution"].as_str().unwrap()).collect();
    assert_eq!(executions.len(), workers.len());
}

/// Waits until so many workers of the tree have completed. Looks through the eyes of an operator who attaches.
fn await_completed(home: &Home, tree: &str, count: u64) {
    // The daemon that was just killed is not there yet: `roost` waits for it, a bare connection would not.
    home.daemon();
    let mut wire: Wire = home.wire();
    wire.call("attach", &json!({"tree": tree})).unwrap();
    let mut progress = wire.call("watch", &json!({})).unwrap();
    while progress["completed"].as_u64().unwrap() < count {
        let mut next = wire.answer(Duration::from_secs(30)).expect("progress");
        progress = next["params"].take();
    }
}

#[test]
fn a_worker_that_ends_while_there_is_no_broker_keeps_its_exit_code() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", r#"echo up >"$F/events"; echo text; read x <"$F/gate"; exit 7"#);
    assert_eq!(events.line(), "up");
    let waits = tree.roost(["result", "w", "--wait", "--json"]).start();
    let pids = home.daemon();
    let worker = Watched::new(tree.pid("w"));
    // The supervisor stands still, so that the worker certainly ends before the next broker is there.
    let supervisor = Watched::new(pids.supervisor);
    supervisor.signal(Signal::STOP);
    Watched::new(pids.broker).kill();
    gate.release(1);
    assert!(worker.ends_within(Duration::from_secs(20)));
    supervisor.signal(Signal::CONT);
    // The client that waits has seen no more than a pause.
    let result = waits.end().expect(1).json();
    assert_eq!(result["outcome"], json!({"status": "failed", "kind": "exit", "code": 7}));
    assert_eq!(result["answer"], "text\n");
}

// B06, the variant with kill.
#[test]
fn the_next_supervisor_adopts_what_runs_and_nothing_runs_twice() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("w1", r#"echo start >>"$F/L"; echo up >"$F/events"; read x <"$F/gate"; echo R1"#);
    tree.spawn("w2", r#"echo go >>"$F/M"; echo R2"#);
    assert_eq!(events.line(), "up");
    let pid = tree.pid("w1");
    let waits = tree.roost(["wait", "w1", "w2"]).start();
    home.kill_supervisor();
    // Whoever asks next starts it again; the waiting client too has found it.
    let status = tree.status();
    let (w1, w2) = (by_name(&status, "w1"), by_name(&status, "w2"));
    assert_eq!((&w1["state"], &w1["pid"], &w1["epoch"]), (&json!("running"), &json!(pid), &json!(1)), "{status}");
    assert_eq!(w2["state"], "queued", "{status}");
    assert_eq!(home.daemons().0.len(), 1);
    gate.release(1);
    // Nobody saw its exit code; its output is all there, and labelled partial.
    let done = waits.end().expect(1);
    assert_eq!(done.text(), "w1 failed: lost: its process is gone and nobody saw how it ended\nw2 completed\n");
    let result = tree.result("w1");
    assert_eq!((outcome_of(&result), &result["answer"], &result["partial"]), ("lost", &json!("R1\n"), &json!(true)));
    assert_eq!(tree.answer("w2"), "R2\n");
    assert_eq!((home.read("L").as_str(), home.read("M").as_str()), ("start\n", "go\n"));
}

/// As if the machine had been started anew since the daemon wrote its journal last.
fn written_in_another_boot(home: &Home) {
    let (journal, recovered) = Journal::open(&home.state_dir()).unwrap();
    let clock = ClockMark { boot_id: "another".into(), ..recovered.clock.unwrap() };
    block_on(journal.commit(Batch { clock: Some(clock), ..Batch::default() })).unwrap();
}

#[test]
fn a_process_of_another_boot_is_never_taken_for_one_that_lives() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("w", r#"trap 'echo signalled >"$F/L"' TERM; echo up >"$F/events"; read x <"$F/gate"; echo over >"$F/events""#);
    tree.spawn("next", "echo N");
    assert_eq!(events.line(), "up");
    let process = Watched::new(tree.pid("w"));
    home.kill_daemon();
    written_in_another_boot(&home);
    // Whoever has its pid and its start time now is a stranger.
    let result = tree.result("w");
    assert_eq!(outcome_of(&result), "lost", "{result}");
    assert_eq!(tree.answer("next"), "N\n");
    tree.roost(["stop", "w"]).run().ok();
    // Nor by a later broker, which finds its own boot in the journal.
    home.kill_broker();
    assert_eq!(outcome_of(&tree.worker("w")), "lost");
    assert!(!process.ends_within(Duration::ZERO));
    gate.release(1);
    assert_eq!((events.line().as_str(), home.read("L").as_str()), ("over", ""));
}

#[test]
fn a_stop_reaches_what_was_adopted() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--stop-grace", "300ms"]);
    tree.spawn("w", r#"trap '' TERM; setsid sh -c 'echo up >"$F/events"; exec sleep 600' & wait; sleep 600"#);
    assert_eq!(events.line(), "up");
    home.kill_daemon();
    assert_eq!(tree.roost(["stop", "w"]).run().ok().text(), "w stopped\n");
    assert!(home.workers().is_empty());
    assert_eq!(outcome_of(&tree.worker("w")), "stopped");
}

#[test]
fn parked_blocked_and_queued_survive_both_deaths() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "2"]);
    let child = |name: &str| format!(r#"roost spawn --name {name} -- sh -c 'echo up >"$F/events"; read x <"$F/gate"; echo K' >&2"#);
    tree.spawn_with(
        "parks",
        &["--descendants", "1"],
        &format!(r#"if [ "${{ROOST_WAKE-}}" = 1 ]; then grep -o K; exit; fi; {}; exec roost park"#, child("k1")),
    );
    tree.until_state("parks", "parked");
    tree.spawn_with("blocks", &["--descendants", "1"], &format!("{}; roost wait; echo B", child("k2")));
    events.lines(2);
    tree.until_state("blocks", "blocked");
    tree.spawn("queued", "echo Q");
    home.kill_broker();
    home.kill_daemon();
    let status = tree.status();
    let states = ["parks", "queued"].map(|name| by_name(&status, name)["state"].as_str().unwrap().to_owned());
    assert_eq!(states, ["parked", "queued"], "{status}");
    assert!(is_up(by_name(&status, "k1")) && is_up(by_name(&status, "k2")), "{status}");
    gate.release(2);
    assert_eq!(tree.answer("queued"), "Q\n");
    // The children's ends were not seen by the new supervisor: they are lost, and both leads go on all the same.
    assert!(tree.answer("parks").starts_with('K'), "the answer of a lost child is kept");
    let blocks = tree.result("blocks");
    assert_eq!(
        (outcome_of(&blocks), &blocks["answer"]),
        ("lost", &json!("k2 failed: lost: its process is gone and nobody saw how it ended\nB\n"))
    );
    assert!(home.workers().is_empty());
}

#[test]
fn all_killed_at_once_is_told_honestly_and_the_queue_goes_on() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("w1", r#"echo start >>"$F/L"; echo part; echo up >"$F/events"; exec sleep 600"#);
    tree.spawn("w2", r#"echo go >>"$F/M"; echo R2"#);
    assert_eq!(events.line(), "up");
    let pids = home.daemon();
    let all = [pids.supervisor, pids.broker, tree.pid("w1")].map(Watched::new);
    all.iter().for_each(|process| process.signal(Signal::KILL));
    all.iter().for_each(Watched::await_end);
    let result = tree.result("w1");
    assert_eq!((outcome_of(&result), &result["answer"]), ("lost", &json!("part\n")));
    assert_eq!(tree.answer("w2"), "R2\n");
    assert_eq!((home.read("L").as_str(), home.read("M").as_str()), ("start\n", "go\n"));
}

// B18, the rows of plain commands.
#[test]
fn a_failure_is_never_reported_as_success() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    for (name, script, outcome, answer) in [
        ("fine", "printf X", json!({"status": "completed"}), "X"),
        ("silent", "true", json!({"status": "completed"}), ""),
        ("killed", "echo hi; kill -9 $$", json!({"status": "failed", "kind": "crash", "signal": 9}), "hi\n"),
        ("segv", "kill -SEGV $$", json!({"status": "failed", "kind": "crash", "signal": 11}), ""),
        ("code", "echo EARLY; exit 3", json!({"status": "failed", "kind": "exit", "code": 3}), "EARLY\n"),
        ("high", "exit 255", json!({"status": "failed", "kind": "exit", "code": 255}), ""),
    ] {
        tree.spawn(name, script);
        let result = tree.result(name);
        assert_eq!((&result["outcome"], &result["answer"]), (&outcome, &json!(answer)), "{name}");
        assert_eq!(result["partial"], json!(outcome["status"] != "completed"), "{name}");
    }
}

// B19 (c): ten that are killed from outside; the slots come back.
#[test]
fn killed_workers_are_crashes_and_their_slots_come_back() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "2"]);
    for round in 0..10 {
        tree.spawn(&format!("w{round}"), r#"echo hi; echo $$ >"$F/events"; exec sleep 600"#);
    }
    for _ in 0..10 {
        Watched::new(events.line().parse().unwrap()).signal(Signal::KILL);
    }
    for round in 0..10 {
        let result = tree.result(&format!("w{round}"));
        assert_eq!((&result["outcome"]["signal"], &result["answer"], &result["partial"]), (&json!(9), &json!("hi\n"), &json!(true)));
    }
    tree.spawn("a", r#"echo a >"$F/events"; read x <"$F/gate""#);
    tree.spawn("b", r#"echo b >"$F/events"; read x <"$F/gate""#);
    events.lines(2);
    gate.release(2);
    tree.roost(["wait", "a", "b"]).run().ok();
}

// B08 (d), and a `run` whose client is killed.
#[test]
fn a_killed_client_costs_nothing() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    let spawn = tree.roost(["spawn", "--name", "w", "--", "sh", "-c", r#"echo up >"$F/events"; read x <"$F/gate"; echo ok"#]).start();
    assert_eq!(events.line(), "up");
    spawn.signal(Signal::KILL);
    spawn.end();
    let wait = tree.roost(["wait", "w"]).start();
    home.until_connections(2);
    wait.signal(Signal::KILL);
    wait.end();
    // An answer that is on its way to a client that dies counts as told; this one is known to be gone before there is one.
    home.until_connections(1);
    gate.release(1);
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "w completed\n");
    assert_eq!(tree.answer("w"), "ok\n");
    let run =
        home.roost(["run", "--name", "r", "--", "sh", "-c", r#"echo $ROOST_TREE >"$F/events"; read x <"$F/gate"; echo kept"#]).start();
    let id = events.line();
    run.signal(Signal::KILL);
    run.end();
    gate.release(1);
    // Whoever knows the tree reads it, as its root too while it is open.
    let done = home.roost(["result", "r", "--wait", "--tree", &id]).run().ok();
    assert_eq!(done.text(), "kept\n");
}

// B16, 25 rounds instead of 200: at each of four moments in a worker's life, of the broker and of both.
#[test]
fn no_completion_is_lost_or_told_twice_whichever_moment_a_daemon_dies_in() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--budget", "1000"]);
    let mut executions = BTreeSet::new();
    for round in 0..25 {
        let name = format!("n{round}");
        let mut gate = home.fifo(&name);
        let script = format!(r#"echo up >"$F/events"; read x <"$F/{name}"; echo R-{round}"#);
        let (moment, whole) = (round / 2 % 4, round % 2 == 1);
        let strike = |at: u64| match (at == moment, whole) {
            (true, true) => home.kill_daemon(),
            (true, false) => home.kill_broker(),
            (false, _) => {}
        };
        tree.spawn(&name, &script);
        strike(0);
        if (moment, whole) == (0, true) {
            // It may not have been started yet, and without a client nobody starts a daemon that would.
            home.start_daemon(&[]);
        }
        assert_eq!(events.line(), "up");
        strike(1);
        gate.release(1);
        strike(2);
        if moment == 3 {
            tree.until_state(&name, "ended");
            strike(3);
        }
        let reply = tree.roost(["wait", "--json"]).run().json();
        let ended = reply["ended"].as_array().unwrap_or_else(|| panic!("round {round}: {reply}"));
        assert_eq!(ended.len(), 1, "round {round}: {reply}");
        assert_eq!(ended[0]["name"], name.as_str());
        executions.insert(ended[0]["execution"].as_str().unwrap().to_owned());
        let result = tree.result(&name);
        let outcome = outcome_of(&result);
        // A process that the supervisor left behind is lost; whether it had ended before is open in two of the moments.
        let expected: &[&str] = match (moment, whole) {
            (1, true) => &["lost"],
            (0 | 2, true) => &["completed", "lost"],
            _ => &["completed"],
        };
        assert!(expected.contains(&outcome), "round {round}, moment {moment}: {result}");
        assert_eq!(result["answer"], format!("R-{round}\n"), "round {round}: {result}");
    }
    assert_eq!(executions.len(), 25);
    let status = tree.status();
    assert_eq!((&status["trees"][0]["live"], &status["trees"][0]["queued"]), (&json!(0), &json!(0)));
    assert_eq!(tree.roost(["wait", "--json"]).run().ok().json()["ended"], Value::Array(Vec::new()));
    assert!(home.workers().is_empty());
}
