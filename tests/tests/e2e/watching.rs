//! `roost watch` and the progress of `run` and `wait` in a real terminal.

use roost_tests::real::{Agents, Home, Terminal, Tree, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Watches the tree in a shell that says afterwards how it left, and whether the terminal is what it was.
const WATCHED: &str = r#"stty -g >before; roost watch; echo "left with $?"; stty -g >after; cmp before after && echo the same"#;

fn watch<'h>(home: &'h Home, tree: &Tree<'_>, size: (u32, u32)) -> Terminal<'h> {
    Terminal::start(home, size, WATCHED, |command| tree.as_root(command))
}

/// The alternate screen is left, the cursor is there, and the terminal reads lines again.
#[track_caller]
fn is_clean(terminal: &Terminal<'_>, code: i32) {
    terminal.until(&[&format!("left with {code}"), "the same", "shell>"]);
    assert_eq!(terminal.format("#{alternate_on} #{cursor_flag}"), "0 1");
    assert!(!terminal.screen().join("\n").contains("WORKER"), "nothing of the view is left: {:?}", terminal.screen());
}

#[test]
fn a_tree_is_watched_followed_steered_and_stopped() {
    let home = Home::new();
    if !Terminal::is_there(&home, "roost watch in a terminal") {
        return;
    }
    let (tree, mut agents, mut gate) = (Tree::open(&home, &["--cap", "2"]), Agents::new(&home), home.fifo("gate"));
    let mut agent = agents.start(&tree, "agent", 2);
    tree.spawn("talker", r#"echo first; read x <"$F/gate"; echo second; read x <"$F/gate"; echo "gone $x""#);
    tree.spawn("waits", "true");
    let terminal = watch(&home, &tree, (100, 24));
    let screen = terminal.until(&["live 2/2  queued 1", "> agent", "talker", "waits", "queued 1     all 2 slots are taken"]);
    assert!(screen[0].contains("[##]") && screen[2].contains("STATE"), "{screen:?}");
    // The output of the one that is selected, as it comes; then its events.
    terminal.press(&["Down"]);
    terminal.until(&["> talker", "-- talker  [1 output]", "first"]);
    gate.release(1);
    terminal.until(&["first\nsecond"]);
    terminal.type_in("4");
    terminal.until(&["[4 events]", "created talker", "running talker"]);
    // Words to the other one, found by name. What a worker cannot take is said, and is not lost.
    terminal.type_in("m");
    terminal.type_in("hello 漢字");
    terminal.press(&["Enter"]);
    terminal.until(&["cannot be told anything", "(not_steerable)", "the words are kept: m"]);
    terminal.type_in("/AGE");
    terminal.press(&["Enter"]);
    terminal.until(&["> agent", "-- agent"]);
    terminal.type_in("m");
    terminal.type_in("go on 漢字");
    terminal.until(&["to agent: go on 漢字"]);
    terminal.press(&["Enter"]);
    terminal.until(&["agent m"]);
    assert_eq!(agent.texts(), ["go on 漢字"]);
    terminal.type_in("3");
    terminal.until(&["[3 conversation]", "> lead message", "go on 漢字"]);
    // Resized to nothing and back.
    terminal.resize(30, 8);
    terminal.until(&["too small: 30x8 of 40x10"]);
    terminal.resize(160, 40);
    terminal.until(&["|-- agent", "go on 漢字"]);
    terminal.resize(100, 24);
    terminal.until(&["-- agent  1 output"]);
    // A stop is not done but by a `y`.
    terminal.type_in("/talker");
    terminal.press(&["Enter"]);
    terminal.until(&["> talker"]);
    terminal.type_in("s");
    terminal.until(&["stop talker? y stops"]);
    terminal.type_in("n");
    terminal.until(&["talker was not stopped"]);
    assert_eq!(tree.worker("talker")["state"], "running");
    terminal.type_in("sy");
    terminal.until(&["talker is being stopped", "stopped 1"]);
    tree.until("the end of talker", |status| roost_tests::real::by_name(status, "talker")["outcome"] == json!({"status": "stopped"}));
    agent.finish("done");
    tree.roost(["close"]).run().ok();
    terminal.until(&["CLOSED", "done 2  failed 0  stopped 1"]);
    terminal.type_in("q");
    is_clean(&terminal, 0);
}

#[test]
fn a_broker_that_is_killed_and_a_daemon_that_is_stopped_are_waited_for() {
    let home = Home::new();
    if !Terminal::is_there(&home, "roost watch over a restart") {
        return;
    }
    let (tree, mut gate) = (Tree::open(&home, &["--cap", "1"]), home.fifo("gate"));
    tree.spawn("one", r#"read x <"$F/gate""#);
    tree.spawn("two", "echo two");
    let terminal = watch(&home, &tree, (80, 24));
    terminal.until(&["live 1/1  queued 1"]);
    home.kill_broker();
    gate.release(1);
    terminal.until(&["live 0/1  queued 0", "done 2"]);
    home.roost(["daemon", "stop"]).run().ok();
    terminal.until(&["reconnecting"]);
    home.roost(["daemon", "start"]).run().ok();
    tree.spawn("three", "true");
    let screen = terminal.until(&["three", "done 3"]);
    assert!(!screen.join("\n").contains("reconnecting"), "{screen:?}");
    terminal.press(&["C-c"]);
    is_clean(&terminal, 0);
}

#[test]
fn the_terminal_is_clean_after_every_signal() {
    let home = Home::new();
    if !Terminal::is_there(&home, "roost watch and signals") {
        return;
    }
    let tree = Tree::open(&home, &[]);
    let terminal = watch(&home, &tree, (80, 24));
    for (signal, last) in [(Signal::TERM, false), (Signal::INT, true)] {
        terminal.until(&["no worker yet"]);
        let watches = || {
            let all = roost_tests::real::all();
            all.into_iter().find(|process| process.arguments().get(1).is_some_and(|word| word == b"watch") && names(process, &home))
        };
        until("the view's process", || watches().is_some());
        kill_process(Pid::from_raw(i32::try_from(watches().unwrap().pid).unwrap()).unwrap(), signal).unwrap();
        is_clean(&terminal, 130);
        if !last {
            terminal.type_in("clear; sh in-terminal; echo 'shell''>'");
            terminal.press(&["Enter"]);
        }
    }
}

fn names(process: &roost_tests::real::Process, home: &Home) -> bool {
    let state = format!("ROOST_STATE_DIR={}", home.state_dir().display());
    process.environment().iter().any(|variable| *variable == state.as_bytes())
}

#[test]
fn ten_thousand_queued_workers_are_watched() {
    let home = Home::in_memory();
    if !Terminal::is_there(&home, "roost watch of ten thousand") {
        return;
    }
    let tree = Tree::open(&home, &["--cap", "2", "--budget", "20000"]);
    tree.roost(["pause"]).run().ok();
    let mut wire = tree.wire();
    for job in 0..500 {
        let tasks: Vec<Value> = (0..20).map(|index| json!({"name": format!("n{}", job * 20 + index + 1), "argv": ["true"]})).collect();
        let submitter = json!({"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18});
        wire.call("launch", &json!({"request_id": format!("j{job}"), "tasks": tasks, "submitter": submitter})).unwrap();
    }
    let terminal = watch(&home, &tree, (80, 24));
    terminal.until(&["queued 10000", "PAUSED", "> n1 ", "the tree is paused"]);
    terminal.press(&["End"]);
    terminal.until(&["> n10000 ", "queued 10000"]);
    // All that happens is taken in while keys are pressed.
    tree.roost(["stop", "n1", "n2", "n5000"]).run().ok();
    terminal.until(&["queued 9997", "stopped 3"]);
    terminal.type_in("/n5000");
    terminal.press(&["Enter"]);
    terminal.until(&["> n5000", "stopped"]);
    terminal.type_in("q");
    is_clean(&terminal, 0);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let done = tree.roost(["watch"]).run().expect(2);
    assert!(done.err().contains("roost status") && done.err().contains("roost events -f"), "{done}");
    let done = home.roost(["watch"]).run().expect(2);
    assert!(done.err().contains("terminal"), "{done}");
    assert_eq!(tree.roost(["watch", "--json"]).run().expect(2).json()["error"]["kind"], "usage");
}

#[test]
fn no_colour_is_no_colour() {
    let home = Home::new();
    if !Terminal::is_there(&home, "roost watch without colour") {
        return;
    }
    let tree = Tree::open(&home, &[]);
    tree.spawn("evil", r"printf '\033[2J\342\200\256.'; exit 1");
    tree.roost(["wait"]).run().expect(1);
    for variable in ["NO_COLOR=1", "TERM=dumb"] {
        let script = format!("script -qc '{variable} roost watch' written");
        let terminal = Terminal::start(&home, (80, 24), &script, |command| tree.as_root(command));
        terminal.until(&["> evil", "\\x1b[2J\\u{202e}.", "failed", "exit code 1"]);
        terminal.type_in("q");
        terminal.until(&["shell>"]);
        let written = home.read("written");
        // A sequence that ends in `m` is a colour or the like, unless it takes all of them back.
        let sequence = |rest: &'_ str| rest.find(|c: char| c.is_ascii_alphabetic()).map(|end| rest[..=end].to_owned());
        let sequences = written.split("\u{1b}[").skip(1).filter_map(sequence);
        let painted: Vec<String> =
            sequences.filter(|one| one.ends_with('m') && !["m", "0m", "39m", "49m", "59m"].contains(&one.as_str())).collect();
        assert!(painted.is_empty() && !written.contains('\u{202e}'), "{variable}: {painted:?} {written:?}");
        terminal.type_in("exit");
        terminal.press(&["Enter"]);
        until("the end of the terminal", || !terminal.is_running());
    }
}

#[test]
fn a_wait_shows_progress_until_it_is_over_and_quiet_ones_do_not() {
    let home = Home::new();
    if !Terminal::is_there(&home, "progress of roost wait") {
        return;
    }
    let (tree, mut gate) = (Tree::open(&home, &["--cap", "1"]), home.fifo("gate"));
    tree.spawn("one", "true");
    tree.spawn("two", r#"read x <"$F/gate""#);
    tree.spawn("three", "true");
    let terminal = Terminal::start(&home, (100, 24), "roost wait; echo over", |command| tree.as_root(command));
    terminal.until(&["live 1/1  queued 1  done 1"]);
    gate.release(1);
    let screen = terminal.until(&["over", "three completed"]);
    assert!(!screen.join("\n").contains("live "), "{screen:?}");
    tree.spawn("four", r#"read x <"$F/gate""#);
    terminal.type_in("clear; roost wait -q; echo again");
    terminal.press(&["Enter"]);
    tree.until_state("four", "running");
    gate.release(1);
    let screen = terminal.until(&["again\n", "four completed"]);
    assert!(!screen.join("\n").contains("live "), "{screen:?}");
}
