//! Workers that fork: many, fast, twice, away from their session. A stop ends all of them.

use roost_tests::real::{Home, Process, Tree, Watched, find};

/// Stops the worker and checks that none of these processes, and nothing else of it, is left.
fn stops(home: &Home, tree: &Tree<'_>, name: &str, known: &[Process]) {
    tree.roost(["stop", name]).run().ok();
    assert!(home.workers().is_empty(), "{:?}", home.workers());
    let left: Vec<&Process> = known.iter().filter(|process| process.lives_on()).collect();
    assert!(left.is_empty(), "{left:?}");
    let status = home.daemon_status();
    assert_eq!((status["live"].as_u64(), home.zombies()), (Some(0), 0));
    tree.spawn("after", "printf after");
    assert_eq!(tree.answer("after"), "after");
}

#[test]
fn a_fork_bomb_is_stopped_while_it_grows() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1", "--stop-grace", "500ms"]);
    // 2^8 - 1 processes that all ignore TERM; each waits for its two.
    let bomb = home.script(
        "bomb.sh",
        r#"trap '' TERM; [ "$1" = 3 ] && echo deep >"$F/events"
        [ "$1" = 0 ] && exec sleep 600
        sh "$0" $(($1 - 1)) & sh "$0" $(($1 - 1)) & wait; wait"#,
    );
    tree.spawn("bomb", &format!("exec sh {} 7", bomb.display()));
    // Deep enough to have many, and still growing.
    events.lines(2);
    stops(&home, &tree, "bomb", &[]);
}

#[test]
fn whoever_forked_away_is_ended_too() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1", "--stop-grace", "500ms"]);
    let away = home.script("away.sh", r#"echo $$ >"$F/events"; trap '' TERM HUP; while :; do sleep 600; done"#);
    let away = away.display();
    // A child; two forks; two forks into a session of its own; a session of its own without any environment but the pipe's.
    let script = format!(r#"sh {away} & (sh {away} &) ; (setsid sh {away} &) ; env -i F="$F" PATH="$PATH" setsid sh {away} & wait"#);
    tree.spawn("forks", &script);
    let known: Vec<Process> = events.lines(4).iter().map(|pid| find(pid.parse().unwrap()).unwrap()).collect();
    // Two have lost their parents to the supervisor already or will when it is stopped.
    stops(&home, &tree, "forks", &known);
}

#[test]
fn what_a_worker_leaves_behind_ends_with_it() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1"]);
    let script =
        r#"(setsid sh -c 'trap "" TERM HUP; echo $$ >"$F/events"; while :; do sleep 600; done' &); read x <"$F/gate"; printf done"#;
    let mut gate = home.fifo("gate");
    tree.spawn("leaves", script);
    let left = Watched::new(events.line().parse().unwrap());
    gate.release(1);
    assert_eq!(tree.answer("leaves"), "done");
    // The slot was free only after it was gone.
    assert!(!left.process.lives_on());
    assert!(home.workers().is_empty());
}
