//! The wall clock may be set to any time, at any time: no deadline looks at it.
//!
//! It cannot be stepped for one process on this system (`unshare --time` moves only the monotonic clock), and stepping the machine's
//! would disturb others. So the same story is told to two brokers, one of which hears wild times of day; the daemon's `Clock`, which
//! reads the monotonic clock for everything else, has its own test (`daemon/src/clock.rs`).

use roost_core::broker::Broker;
use roost_core::command::{Allowance, CallId, Caller, Command, Launch, Open, Task};
use roost_core::event::{Digest, InterruptScope, Settings};
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Epoch, ExecutionId, Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};

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
        interrupt_scope: InterruptScope::default(),
    };
    let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "open".into(), key: None, ephemeral: false, settings };
    Command::Open { call: CallId(1), open: Box::new(open) }
}

fn launch(name: &str, call: u64, timeout_ms: Option<u64>) -> Command {
    let task = Task {
        name: Some(name.into()),
        stem: name.into(),
        token: Token::new([2; 16]),
        allowance: Allowance::Exactly(0),
        group: None,
        timeout_ms,
    };
    let launch =
        Launch { request_id: name.into(), digest: Digest(0), tasks: vec![task], foreground: false, generation: None, attended: false };
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
        (7_050, Command::Exited { incarnation: incarnation(1), status: ExitStatus::Signal(9), leftovers: false }),
        (7_060, Command::Exited { incarnation: incarnation(2), status: ExitStatus::Code(0), leftovers: false }),
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
