//! The wall clock may be set to any time, at any time: no deadline looks at it.
//!
//! Stepping the machine's clock would disturb others. So the same story is told to two brokers, one of which hears wild times of day,
//! and a real daemon runs with a library before it that adds to every time of day what a file says.

use std::time::{Duration, Instant};

use roost_core::broker::Broker;
use roost_core::command::{Allowance, CallId, Caller, Command, Launch, Open, Task};
use roost_core::event::{Digest, InterruptScope, Settings, Timing};
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Epoch, ExecutionId, Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_tests::real::{Home, Tree, outcome_of, shim};

const TREE: TreeId = TreeId(7);

fn open() -> Command {
    let settings = Settings {
        cap: 2,
        budget: 50,
        lend_slots: true,
        end_leftovers: true,
        adopt_orphans: false,
        stop_grace_ms: 5_000,
        depth_max: 10,
        group_caps: Vec::new(),
        delivery: roost_core::event::Delivery::Steer,
        join: roost_core::event::Join::Async,
        timing: Timing::default(),
        interrupt_scope: InterruptScope::default(),
    };
    let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "open".into(), key: None, ephemeral: false, settings };
    Command::Open { call: CallId(1), open: Box::new(open) }
}

fn launch(name: &str, call: u64, timeout_ms: Option<u64>) -> Command {
    let task = Task {
        runner: roost_core::event::Runner::Command,
        name: Some(name.into()),
        stem: name.into(),
        token: Token::new([2; 16]),
        allowance: Allowance::Exactly(0),
        group: None,
        timeout_ms,
    };
    let launch = Launch {
        request_id: name.into(),
        digest: Digest(0),
        tasks: vec![task],
        foreground: false,
        generation: None,
        attended: false,
        unusable: None,
    };
    Command::Launch { call: CallId(call), caller: Caller::Root(TREE), launch: Box::new(launch) }
}

/// What happens, and when by the monotonic clock.
fn story() -> Vec<(u64, Command)> {
    let incarnation = |execution| Incarnation { execution: ExecutionId(execution), epoch: Epoch(1) };
    let spawned =
        |execution, pid| Command::Spawned { incarnation: incarnation(execution), process: ProcessIdentity { pid, start_ticks: 1 } };
    let wait = Command::Wait {
        call: CallId(5),
        caller: Caller::Root(TREE),
        request_id: "wait".into(),
        names: vec!["unlimited".into()],
        any: false,
        tell_later: false,
        timeout_ms: Some(2_500),
    };
    vec![
        (0, open()),
        (10, launch("limited", 2, Some(2_000))),
        (11, launch("unlimited", 3, None)),
        (20, spawned(1, 101)),
        (21, spawned(2, 102)),
        (30, wait),
        (1_000, Command::Tick),
        (1_999, Command::Tick),
        // Its time is over: TERM.
        (2_030, Command::Tick),
        (2_600, Command::Tick),
        // The grace is over: KILL.
        (7_040, Command::Tick),
        (7_050, Command::Exited { incarnation: incarnation(1), status: ExitStatus::Signal(9), leftovers: Vec::new() }),
        (7_060, Command::Exited { incarnation: incarnation(2), status: ExitStatus::Code(0), leftovers: Vec::new() }),
    ]
}

/// Everything that the broker does and waits for, without the time of day.
fn told(wall_ms: impl Fn(usize) -> u64) -> Vec<String> {
    let mut broker = Broker::restore(State::default(), None);
    let mut said = Vec::new();
    for (number, (mono, command)) in story().into_iter().enumerate() {
        let now = Now { mono: Mono(mono), wall_ms: wall_ms(number) };
        let outcome = broker.step(now, command).unwrap();
        let events: Vec<_> = outcome.records.iter().map(|record| &record.event).collect();
        said.push(format!("{mono}: {events:?} {:?} next {:?}", outcome.effects, broker.next_deadline()));
    }
    said
}

#[test]
fn a_wall_clock_that_is_set_moves_no_deadline() {
    let year = 365 * 24 * 60 * 60 * 1_000_u64;
    let steady = told(|number| 50 * year + number as u64);
    assert!(steady.iter().any(|line| line.starts_with("2030") && line.contains("Timeout")), "{steady:#?}");
    // Back by a year, forward by a year, to the beginning and to the end of time.
    let wild = [50 * year, 49 * year, 51 * year, 0, u64::MAX / 2, 1];
    assert_eq!(told(|number| wild[number % wild.len()]), steady);
    assert_eq!(told(|_| 0), steady);
}

/// `clock_gettime` as the daemon hears it: the time of day is off by as many seconds as the file says, everything else is true.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, at);
    const char *file = getenv("WALL_OFFSET");
    if (clock != CLOCK_REALTIME || done != 0 || !file) return done;
    char text[32] = {0};
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return done;
    if (read(fd, text, sizeof text - 1) > 0) at->tv_sec += atoll(text);
    close(fd);
    return done;
}
"#;

#[test]
fn a_daemon_whose_wall_clock_is_stepped_both_ways_keeps_its_deadlines() {
    let home = Home::new();
    let (shim, offset) = (shim(&home, "wall", SHIM), home.file("offset"));
    let step = |seconds: i64| std::fs::write(&offset, seconds.to_string()).unwrap();
    step(0);
    home.command(home.program("roostd")).arg("--detach").env("LD_PRELOAD", &shim).env("WALL_OFFSET", &offset).run().ok();
    let tree = Tree::open(&home, &["--cap", "3"]);
    let mut fifo = home.fifo("fifo");
    let started = Instant::now();
    tree.spawn_with("late", &["--timeout", "3s"], "sleep 60");
    tree.spawn("quick", "read _ <$F/fifo; echo done");
    tree.until_state("late", "running");
    let mut seen = Vec::new();
    for days in [1, -365, 3_650] {
        step(days * 86_400);
        // A launch makes the daemon look at both clocks.
        tree.spawn(&format!("at{days}"), "true");
        seen.push(tree.worker(&format!("at{days}"))["accepted_at_ms"].as_i64().unwrap());
        assert_eq!(tree.worker("late")["state"], "running", "a step of {days} days ended what has 3 s");
    }
    assert!(seen[1] < seen[0] && seen[0] < seen[2], "the daemon did hear other times of day: {seen:?}");
    fifo.release(1);
    assert_eq!(tree.answer("quick"), "done\n");
    assert_eq!(outcome_of(&tree.result("late")), "timeout");
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(3), "its time was over early, after {took:?}");
}
