//! What the times and tries of a tree do, each against what the defaults do.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

mod bench;

use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Role, Settle, Speak, Task};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Context, Digest, Event, Place, Runner, Settings, Timing, TreeOpened};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::state::worker::Phase;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Incarnation, Token, TreeId};
use roost_proto::limits::{START_RETRIES_MAX, TIMING_MS_MAX, WAKE_BYPASS_MAX};
use roost_proto::link::{ExitStatus, ProcessIdentity, Signal};

const TREE: TreeId = TreeId(7);
const ROOT: Caller = Caller::Root(TREE);
const CONTEXT: Context = Context { digest: Digest(1), bytes: 0, place: Place::Journal };

fn settings(timing: Timing) -> Settings {
    Settings { cap: 1, budget: 200, timing, ..bench::settings() }
}

/// A broker with one tree, and the next numbers of its calls and moments.
struct Bench {
    broker: Broker,
    call: u64,
    now: u64,
}

impl Bench {
    fn new(timing: Timing) -> Self {
        let mut bench = Self::bare();
        assert_eq!(refusal(&bench.open(timing)), None);
        bench
    }

    fn bare() -> Self {
        Self { broker: Broker::restore(State::default(), None), call: 0, now: 0 }
    }

    fn open(&mut self, timing: Timing) -> Stepped {
        let settings = settings(timing);
        let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "o".into(), key: None, ephemeral: false, settings };
        self.ask(|call| Command::Open { call, open: Box::new(open) })
    }

    fn step(&mut self, command: Command) -> Stepped {
        self.now += 1;
        self.broker.step(Now { mono: Mono(self.now), wall_ms: 0 }, command).unwrap()
    }

    fn ask(&mut self, command: impl FnOnce(CallId) -> Command) -> Stepped {
        self.call += 1;
        let call = CallId(self.call);
        self.step(command(call))
    }

    fn launch(&mut self, caller: Caller, names: &[String]) -> Stepped {
        let task = |name: &String| Task {
            name: Some(name.clone()),
            stem: String::new(),
            token: Token::new([2; 16]),
            allowance: Allowance::Exactly(if caller == ROOT && names.len() == 1 { 2 } else { 0 }),
            runner: if name.starts_with("speaker") { Runner::Worker } else { Runner::Command },
            group: None,
            timeout_ms: None,
        };
        let request_id = names.concat();
        let tasks = names.iter().map(task).collect();
        let launch = Launch { request_id, digest: Digest(0), tasks, foreground: false, attended: false, generation: None, unusable: None };
        self.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) })
    }

    /// Launches one worker, whose process starts at once.
    fn started(&mut self, caller: Caller, name: &str) -> Incarnation {
        let stepped = self.launch(caller, &[name.to_owned()]);
        let incarnation = spawned(&stepped).unwrap();
        self.step(Command::Spawned { incarnation, process: ProcessIdentity { pid: 1, start_ticks: 1 } });
        incarnation
    }

    fn caller(&self, incarnation: Incarnation) -> Caller {
        Caller::Worker { worker: self.broker.state().executions[&incarnation.execution], epoch: incarnation.epoch }
    }

    fn exits(&mut self, incarnation: Incarnation) -> Stepped {
        self.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: Vec::new() })
    }

    /// A process of a worker says hello as its voice, and takes its task in.
    fn hello(&mut self, incarnation: Incarnation) -> Stepped {
        let Caller::Worker { worker, epoch } = self.caller(incarnation) else { panic!("a worker") };
        let claim = Claim {
            tree: TREE,
            worker: Some(worker),
            token: Token::new([2; 16]),
            epoch: Some(epoch),
            lineage: vec![ProcessIdentity { pid: 1, start_ticks: 1 }],
            role: Some(Role::Voice { can_park: true, steers: true }),
        };
        let stepped = self.ask(|call| Command::Hello { call, claim: Some(claim) });
        self.speaks(incarnation, Speak::Ack { request_id: None, items: vec![1] });
        stepped
    }

    fn speaks(&mut self, incarnation: Incarnation, speak: Speak) -> Stepped {
        let caller = self.caller(incarnation);
        let worker = self.broker.state().executions[&incarnation.execution];
        let lease = self.broker.state().workers[&worker].speech.as_ref().map(|speech| speech.lease);
        self.ask(|call| Command::Speak { call, caller, lease, speak: Box::new(speak) })
    }

    fn settles(&mut self, incarnation: Incarnation) -> Stepped {
        let settle = Settle {
            request_id: format!("settle-{}", self.call),
            answered: true,
            context: Some(CONTEXT),
            aborted: false,
            error: None,
            wrapped_up: false,
            truncated: false,
            usage: None,
        };
        self.speaks(incarnation, Speak::Settle { settle })
    }

    fn park(&mut self, incarnation: Incarnation) {
        let caller = self.caller(incarnation);
        let stepped = self.ask(|call| Command::Park { call, caller, context: CONTEXT });
        assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::Reply { reply: Reply::Parked, .. })));
    }

    /// Lets so much time pass.
    fn pass(&mut self, ms: u64) -> Stepped {
        // The step itself takes one more.
        self.now += ms - 1;
        self.step(Command::Tick)
    }

    fn phase(&self, incarnation: Incarnation) -> &Phase {
        let state = self.broker.state();
        &state.workers[&state.executions[&incarnation.execution]].phase
    }
}

fn spawned(stepped: &Stepped) -> Option<Incarnation> {
    stepped.effects.iter().find_map(|effect| if let Effect::Spawn(spawn) = effect { Some(spawn.incarnation) } else { None })
}

fn refusal(stepped: &Stepped) -> Option<&Rejection> {
    stepped.effects.iter().find_map(|effect| if let Effect::Refuse { rejection, .. } = effect { Some(rejection) } else { None })
}

fn kills(stepped: &Stepped) -> bool {
    stepped.effects.iter().any(|effect| matches!(effect, Effect::Signal { signal: Signal::Kill, .. }))
}

#[test]
fn settle_to_exit_says_when_a_parked_process_is_killed() {
    for (settle_to_exit_ms, killed_after) in [(Timing::default().settle_to_exit_ms, Some(5_000)), (40, Some(40)), (0, None)] {
        let mut bench = Bench::new(Timing { settle_to_exit_ms, ..Timing::default() });
        let lead = bench.started(ROOT, "lead");
        bench.park(lead);
        let Some(after) = killed_after else {
            assert_eq!(bench.broker.next_deadline(), None);
            assert!(!kills(&bench.pass(TIMING_MS_MAX)) && matches!(bench.phase(lead), Phase::Leaving { .. }));
            continue;
        };
        assert!(!kills(&bench.pass(after - 1)), "{after}");
        assert!(kills(&bench.pass(1)), "{after}");
    }
}

#[test]
fn replay_uses_the_times_that_were_recorded() {
    let mut bench = Bench::bare();
    let mut records = bench.open(Timing { settle_to_exit_ms: 40, ..Timing::default() }).records;
    let launched = bench.launch(ROOT, &["lead".to_owned()]);
    let incarnation = spawned(&launched).unwrap();
    records.extend(launched.records);
    records.extend(bench.step(Command::Spawned { incarnation, process: ProcessIdentity { pid: 1, start_ticks: 1 } }).records);
    let caller = bench.caller(incarnation);
    records.extend(bench.ask(|call| Command::Park { call, caller, context: CONTEXT }).records);
    let mut replayed = State::default();
    for record in &records {
        // As the journal keeps it.
        let text = serde_json::to_string(record).unwrap();
        replayed.apply(&serde_json::from_str(&text).unwrap()).unwrap();
    }
    assert_eq!(serde_json::to_value(&replayed).unwrap(), serde_json::to_value(bench.broker.state()).unwrap());
    let Phase::Leaving { kill_at, .. } = bench.phase(incarnation) else { panic!("it has parked") };
    assert_eq!(*kill_at, Some(Mono(bench.now + 40)));
}

#[test]
fn a_tree_that_is_older_than_these_settings_has_the_defaults() {
    let old = r#"{"event":"tree_opened","tree":"t7","token":"00112233445566778899aabbccddeeff","request_id":"r","key":null,"ephemeral":false,
        "settings":{"cap":8,"budget":50,"lend_slots":true,"end_leftovers":true,"adopt_orphans":false,"stop_grace_ms":5000,"depth_max":9,
        "group_caps":[]}}"#;
    let Event::TreeOpened(opened) = serde_json::from_str::<Event>(old).unwrap() else { panic!("a tree") };
    let TreeOpened { settings, .. } = *opened;
    assert_eq!(settings.timing, Timing::default());
    // The numbers themselves: older journals are replayed with them, whatever a new tree gets.
    let numbers = Timing {
        settle_to_exit_ms: 5_000,
        leftovers_grace_ms: 1_000,
        start_retries: 2,
        start_retry_ms: 1_000,
        early_wake_dwell_ms: 250,
        wake_bypass: 32,
        park_deadline_ms: 10_000,
        park_again_ms: 5_000,
        startup_ms: 120_000,
        idle_ms: 1_200_000,
        hold_ms: 200,
        join_window_ms: 100,
        join_hold_ms: 30_000,
        join_straggler_ms: 15_000,
    };
    assert_eq!(settings.timing, numbers);
    let asked = r#"{"event":"park_asked","worker":"w1","deadline":10000}"#;
    let Event::ParkAsked { deadline, .. } = serde_json::from_str::<Event>(asked).unwrap() else { panic!("a park") };
    assert_eq!(deadline, Some(Mono(10_000)));
}

#[test]
fn leftovers_grace_goes_with_every_start() {
    for (end_leftovers, leftovers_grace_ms, expected) in [(true, 0, Some(0)), (true, 70, Some(70)), (false, 70, None)] {
        let mut bench = Bench::bare();
        let timing = Timing { leftovers_grace_ms, ..Timing::default() };
        let settings = Settings { end_leftovers, ..settings(timing) };
        let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "o".into(), key: None, ephemeral: false, settings };
        bench.ask(|call| Command::Open { call, open: Box::new(open) });
        let stepped = bench.launch(ROOT, &["lead".to_owned()]);
        let grace =
            stepped.effects.iter().find_map(|effect| if let Effect::Spawn(it) = effect { Some(it.leftovers_grace_ms) } else { None });
        assert_eq!(grace, Some(expected));
        // And with every adoption by another supervisor.
        let stepped = bench.step(Command::Reconcile { children: Vec::new() });
        let adopts = |effect: &Effect| matches!(effect, Effect::Adopt { leftovers_grace_ms, .. } if *leftovers_grace_ms == expected);
        assert!(stepped.effects.iter().any(adopts), "{:?}", stepped.effects);
    }
}

#[test]
fn start_retries_and_their_pause_are_counted() {
    for (start_retries, start_retry_ms) in [(2, 1_000), (0, 1_000), (3, 10), (1, 0)] {
        let mut bench = Bench::new(Timing { start_retries, start_retry_ms, ..Timing::default() });
        let mut incarnation = spawned(&bench.launch(ROOT, &["lead".to_owned()])).unwrap();
        let first = incarnation;
        for n in 1..=u64::from(start_retries) {
            let failed = bench.step(Command::SpawnFailed { incarnation, reason: "EAGAIN".into(), transient: true });
            incarnation = if start_retry_ms == 0 {
                spawned(&failed).unwrap()
            } else {
                assert_eq!(spawned(&failed), None);
                assert_eq!(spawned(&bench.pass(n * start_retry_ms - 1)), None);
                spawned(&bench.pass(1)).unwrap()
            };
        }
        let failed = bench.step(Command::SpawnFailed { incarnation, reason: "EAGAIN".into(), transient: true });
        assert_eq!((spawned(&failed), incarnation.epoch.0), (None, first.epoch.0 + start_retries));
        assert!(matches!(bench.phase(first), Phase::Ended { .. }), "{start_retries} tries: {:?}", bench.phase(first));
    }
}

#[test]
fn early_wake_dwell_is_how_long_a_slot_is_to_spare_before() {
    for dwell in [250, 0, 2_000] {
        let mut bench = Bench::new(Timing { early_wake_dwell_ms: dwell, ..Timing::default() });
        bench.ask(|call| Command::Cap { call, caller: ROOT, cap: Some(3) });
        let lead = bench.started(ROOT, "lead");
        let quick = bench.started(bench.caller(lead), "quick");
        bench.started(bench.caller(lead), "slow");
        bench.park(lead);
        bench.exits(lead);
        let ended = bench.exits(quick);
        if dwell == 0 {
            assert!(spawned(&ended).is_some(), "at once");
            continue;
        }
        assert_eq!(spawned(&ended), None);
        assert_eq!(spawned(&bench.pass(dwell - 1)), None);
        assert!(spawned(&bench.pass(1)).is_some(), "{dwell}");
    }
}

#[test]
fn wake_bypass_is_how_many_starts_pass_over_a_ready_parent() {
    for bypass in [1, 3, 32] {
        let mut bench = Bench::new(Timing { wake_bypass: bypass, ..Timing::default() });
        let lead = bench.started(ROOT, "lead");
        let kid = bench.launch(bench.caller(lead), &["kid".to_owned()]);
        assert_eq!(spawned(&kid), None);
        bench.park(lead);
        let kid = spawned(&bench.exits(lead)).unwrap();
        bench.step(Command::Spawned { incarnation: kid, process: ProcessIdentity { pid: 1, start_ticks: 1 } });
        for batch in 0..2 {
            let names: Vec<String> = (0..20).map(|n| format!("q{batch}-{n}")).collect();
            bench.launch(ROOT, &names);
        }
        let mut running = kid;
        let mut passed = 0;
        loop {
            running = spawned(&bench.exits(running)).unwrap();
            if running.execution == lead.execution {
                break;
            }
            passed += 1;
            bench.step(Command::Spawned { incarnation: running, process: ProcessIdentity { pid: 1, start_ticks: 1 } });
        }
        assert_eq!(passed, bypass);
    }
}

#[test]
fn park_deadline_and_park_again_say_when_a_silent_worker_is_asked() {
    for (park_deadline_ms, park_again_ms) in [(10_000, 5_000), (20, 30), (0, 5_000), (20, 0)] {
        let mut bench = Bench::new(Timing { park_deadline_ms, park_again_ms, ..Timing::default() });
        let lead = bench.started(ROOT, "speaker");
        bench.hello(lead);
        bench.launch(bench.caller(lead), &["kid".to_owned()]);
        let asks = |stepped: &Stepped| stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. }));
        assert!(asks(&bench.settles(lead)));
        if park_deadline_ms == 0 {
            assert!(bench.pass(TIMING_MS_MAX).records.is_empty() && matches!(bench.phase(lead), Phase::ParkAsked { deadline: None, .. }));
            continue;
        }
        let before = bench.pass(park_deadline_ms - 1);
        assert!(before.records.is_empty(), "{:?}", before.records);
        let after = bench.pass(1);
        assert!(after.records.iter().any(|record| matches!(record.event, Event::ParkCancelled { .. })));
        if park_again_ms == 0 {
            assert!(asks(&after), "at once");
            continue;
        }
        assert!(!asks(&after) && !asks(&bench.pass(park_again_ms - 1)) && asks(&bench.pass(1)));
    }
}

#[test]
fn closed_trees_go_by_age_unless_that_is_off() {
    for (retention_ms, forgotten_after) in [(1_000, Some(1_000)), (0, None)] {
        let mut bench = Bench::bare();
        bench.broker = Broker::restore(State::default(), None).retaining(retention_ms);
        bench.open(Timing::default());
        bench.ask(|call| Command::Close { call, caller: ROOT, now: false });
        let Some(after) = forgotten_after else {
            assert_eq!(bench.broker.next_deadline(), None);
            bench.pass(1_000 * TIMING_MS_MAX);
            assert!(bench.broker.state().trees.contains_key(&TREE));
            continue;
        };
        bench.pass(after - 1);
        assert!(bench.broker.state().trees.contains_key(&TREE));
        bench.pass(1);
        assert!(bench.broker.state().trees.is_empty());
    }
}

#[test]
fn what_is_out_of_its_range_is_refused_with_its_name() {
    let bad: [(&str, Timing); 4] = [
        ("settle_to_exit", Timing { settle_to_exit_ms: TIMING_MS_MAX + 1, ..Timing::default() }),
        ("start_retries", Timing { start_retries: START_RETRIES_MAX + 1, ..Timing::default() }),
        ("wake_bypass", Timing { wake_bypass: 0, ..Timing::default() }),
        ("wake_bypass", Timing { wake_bypass: WAKE_BYPASS_MAX + 1, ..Timing::default() }),
    ];
    for (name, timing) in bad {
        let mut bench = Bench::bare();
        let stepped = bench.open(timing);
        let rejection = refusal(&stepped).unwrap();
        assert!(stepped.records.is_empty() && rejection.to_string().contains(name), "{rejection}");
    }
}
