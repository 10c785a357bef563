//! Faults that were found once and that no scenario table can show: what is told again, and what follows after a restart.

use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Role, Settle, Speak, Task};
use roost_core::effect::{Effect, Owed, OwedKind, Reply, Wake};
use roost_core::event::{Context, Delivery, Digest, InterruptScope, Join, Place, Runner, Settings, Timing};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::state::worker::Phase;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Epoch, Incarnation, Token, TreeId};
use roost_proto::limits::{PARK_DECLINE_MS_MAX, START_RETRY_MS};
use roost_proto::link::{ExitStatus, ProcessIdentity, Signal};

const TREE: TreeId = TreeId(7);
const CONTEXT: Context = Context { digest: Digest(1), bytes: 0, place: Place::Journal };
const TOKEN: [u8; 16] = [2; 16];

/// A broker with one tree, and the next numbers of its calls and moments.
struct Bench {
    broker: Broker,
    call: u64,
    now: u64,
}

impl Bench {
    fn new(cap: u32) -> Self {
        let mut bench = Self { broker: Broker::restore(State::default(), None), call: 0, now: 0 };
        let settings = Settings {
            cap,
            budget: 50,
            lend_slots: true,
            end_leftovers: true,
            adopt_orphans: false,
            stop_grace_ms: 5_000,
            depth_max: 10,
            interrupt_scope: InterruptScope::All,
            group_caps: Vec::new(),
            delivery: Delivery::default(),
            join: Join::default(),
            timing: Timing::default(),
        };
        let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "o".into(), key: None, ephemeral: false, settings };
        bench.ask(|call| Command::Open { call, open: Box::new(open) });
        bench
    }

    fn step(&mut self, command: Command) -> Stepped {
        self.now += 1;
        self.broker.step(Now { mono: Mono(self.now), wall_ms: 0 }, command).expect("no fault of the core")
    }

    fn ask(&mut self, command: impl FnOnce(CallId) -> Command) -> Stepped {
        self.call += 1;
        let call = CallId(self.call);
        self.step(command(call))
    }

    /// The broker of the next life, over the state that this one has left.
    fn restart(&mut self) {
        self.broker = Broker::restore(self.broker.state().clone(), None);
    }

    fn launch(&mut self, caller: Caller, name: &str) -> Incarnation {
        let task = Task {
            name: Some(name.into()),
            stem: String::new(),
            token: Token::new(TOKEN),
            allowance: Allowance::Exactly(if matches!(caller, Caller::Root(_)) { 3 } else { 0 }),
            // Whoever speaks says so by its name.
            runner: if name.starts_with("speaker") { Runner::Worker } else { Runner::Command },
            group: None,
            timeout_ms: None,
        };
        let launch = Launch {
            request_id: name.into(),
            digest: Digest(0),
            tasks: vec![task],
            foreground: false,
            attended: false,
            generation: None,
            unusable: None,
        };
        let stepped = self.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
        let incarnation = spawned(&stepped).expect("a slot is free").0;
        self.step(Command::Spawned { incarnation, process: process(incarnation) });
        incarnation
    }

    fn exits(&mut self, incarnation: Incarnation) -> Stepped {
        self.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: false })
    }

    fn worker(&self, incarnation: Incarnation) -> Caller {
        Caller::Worker { worker: self.broker.state().executions[&incarnation.execution], epoch: incarnation.epoch }
    }

    /// A process says hello; as the voice of its worker, where that speaks.
    fn hello(&mut self, incarnation: Incarnation) -> Stepped {
        let worker = self.broker.state().executions[&incarnation.execution];
        let speaks = self.broker.state().workers[&worker].speaks();
        let claim = Claim {
            tree: TREE,
            worker: Some(worker),
            token: Token::new(TOKEN),
            epoch: Some(incarnation.epoch),
            lineage: vec![process(incarnation).pid],
            role: speaks.then_some(Role::Voice { can_park: true, steers: true }),
        };
        self.ask(|call| Command::Hello { call, claim: Some(claim) })
    }

    fn speaks(&mut self, incarnation: Incarnation, speak: Speak) -> Stepped {
        let caller = self.worker(incarnation);
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
}

fn process(incarnation: Incarnation) -> ProcessIdentity {
    let pid = u32::try_from(incarnation.execution.0).expect("small") * 100 + incarnation.epoch.0;
    ProcessIdentity { pid, start_ticks: 1 }
}

fn spawned(stepped: &Stepped) -> Option<(Incarnation, Option<&Wake>)> {
    stepped.effects.iter().find_map(
        |effect| {
            if let Effect::Spawn(spawn) = effect { Some((spawn.incarnation, spawn.wake.as_ref())) } else { None }
        },
    )
}

/// The names of those whose ends are among these items.
fn ends(items: &[Owed]) -> Vec<String> {
    items.iter().filter_map(|item| if let OwedKind::Completion(end) = &item.what { Some(end.name.clone()) } else { None }).collect()
}

fn names(wake: Option<&Wake>) -> Vec<String> {
    ends(&wake.expect("a wake").items)
}

fn delivered(stepped: &Stepped) -> Option<Vec<String>> {
    stepped.effects.iter().find_map(|effect| if let Effect::Deliver(delivery) = effect { Some(ends(&delivery.items)) } else { None })
}

fn signals(stepped: &Stepped) -> Vec<Signal> {
    stepped.effects.iter().filter_map(|effect| if let Effect::Signal { signal, .. } = effect { Some(*signal) } else { None }).collect()
}

#[test]
fn an_adopted_process_gets_the_signal_that_its_state_asks_for() {
    let mut bench = Bench::new(2);
    let one = bench.launch(Caller::Root(TREE), "one");
    let names = vec!["one".to_owned()];
    let stepped = bench.ask(|call| Command::Stop { call, caller: Caller::Root(TREE), names, no_wait: false });
    assert_eq!(signals(&stepped), [Signal::Term]);
    // The signal goes down with broker and supervisor; the next supervisor knows of no child.
    bench.restart();
    let stepped = bench.step(Command::Reconcile { children: Vec::new() });
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::Adopt { incarnation, .. } if *incarnation == one)));
    let stepped = bench.step(Command::Spawned { incarnation: one, process: process(one) });
    assert_eq!(signals(&stepped), [Signal::Term]);
    bench.now += 10_000;
    let stepped = bench.step(Command::Tick);
    assert_eq!(signals(&stepped), [Signal::Kill]);
    bench.restart();
    bench.step(Command::Reconcile { children: Vec::new() });
    let stepped = bench.step(Command::Spawned { incarnation: one, process: process(one) });
    assert_eq!(signals(&stepped), [Signal::Kill], "and again after the KILL");
}

#[test]
fn a_wake_that_is_tried_again_hands_over_what_has_come_in_between() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(Caller::Root(TREE), "parent");
    let caller = bench.worker(parent);
    let (a, b) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    bench.exits(parent);
    bench.exits(a);
    bench.now += 1_000;
    let stepped = bench.step(Command::Tick);
    let (first, wake) = spawned(&stepped).expect("an early wake");
    assert_eq!((names(wake), wake.map(|wake| wake.settled)), (vec!["a".to_owned()], Some(false)));
    bench.step(Command::SpawnFailed { incarnation: first, reason: "EAGAIN".into(), transient: true });
    bench.exits(b);
    bench.now += START_RETRY_MS;
    let stepped = bench.step(Command::Tick);
    let (second, wake) = spawned(&stepped).expect("a further try");
    assert_eq!((names(wake), wake.map(|wake| wake.settled)), (vec!["a".to_owned(), "b".to_owned()], Some(true)));
    assert_eq!(second.epoch, Epoch(first.epoch.0 + 1));
}

#[test]
fn a_start_that_is_repeated_after_a_crash_does_not_take_its_subtree_for_settled() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(Caller::Root(TREE), "parent");
    let caller = bench.worker(parent);
    let (a, b) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    bench.exits(parent);
    bench.exits(a);
    bench.now += 1_000;
    let (first, _) = spawned(&bench.step(Command::Tick)).map(|(of, _)| (of, ())).expect("an early wake");
    bench.exits(b);
    let stepped = bench.step(Command::NeverStarted { incarnation: first });
    let (again, wake) = spawned(&stepped).expect("the same start");
    assert_eq!(again, first);
    assert_eq!((names(wake), wake.map(|wake| (wake.settled, wake.active_children))), (vec!["a".to_owned()], Some((false, 1))));
}

#[test]
fn a_settled_worker_is_told_again_after_a_lost_connection_until_it_shows_that_it_knows() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(Caller::Root(TREE), "speaker");
    bench.hello(parent);
    bench.speaks(parent, Speak::Ack { items: vec![1] });
    let caller = bench.worker(parent);
    let child = bench.launch(caller, "child");
    bench.settles(parent);
    assert_eq!(delivered(&bench.exits(child)), Some(vec!["child".to_owned()]));
    bench.restart();
    bench.step(Command::Reconcile { children: Vec::new() });
    bench.step(Command::Spawned { incarnation: parent, process: process(parent) });
    assert_eq!(delivered(&bench.hello(parent)), Some(vec!["child".to_owned()]));
    // It settles without having read that: it is told once more, and has not settled.
    assert_eq!(delivered(&bench.settles(parent)), Some(vec!["child".to_owned()]));
    bench.speaks(parent, Speak::Ack { items: vec![2] });
    assert_eq!(delivered(&bench.hello(parent)), None);
    let stepped = bench.settles(parent);
    assert_eq!(signals(&stepped), [Signal::CloseStdin], "nothing below it and nothing owed: that was its last turn");
}

#[test]
fn whoever_declines_to_park_is_asked_again_within_the_bound() {
    let mut bench = Bench::new(1);
    let parent = bench.launch(Caller::Root(TREE), "speaker");
    bench.hello(parent);
    bench.speaks(parent, Speak::Ack { items: vec![1] });
    let caller = bench.worker(parent);
    let task = Task {
        name: Some("child".into()),
        stem: String::new(),
        token: Token::new(TOKEN),
        allowance: Allowance::Exactly(0),
        runner: Runner::Command,
        group: None,
        timeout_ms: None,
    };
    let launch = Launch {
        request_id: "c".into(),
        digest: Digest(0),
        tasks: vec![task],
        foreground: false,
        attended: false,
        generation: None,
        unusable: None,
    };
    bench.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
    bench.settles(parent);
    for not_before_ms in [u64::MAX, PARK_DECLINE_MS_MAX + 1] {
        bench.speaks(parent, Speak::ParkDecline { not_before_ms });
        let deadline = bench.broker.next_deadline().expect("it is asked again");
        assert!(deadline <= Mono(bench.now + PARK_DECLINE_MS_MAX), "{deadline:?}");
        bench.now = deadline.0;
        let stepped = bench.step(Command::Tick);
        assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. })));
    }
}

#[test]
fn two_clients_of_one_blocked_worker_are_answered_when_it_has_its_slot() {
    let mut bench = Bench::new(1);
    let parent = bench.launch(Caller::Root(TREE), "parent");
    let caller = bench.worker(parent);
    let task = |name: &str| Task {
        name: Some(name.into()),
        stem: String::new(),
        token: Token::new(TOKEN),
        allowance: Allowance::Exactly(0),
        runner: Runner::Command,
        group: None,
        timeout_ms: None,
    };
    let launch = Launch {
        request_id: "two".into(),
        digest: Digest(0),
        tasks: vec![task("a"), task("b")],
        foreground: false,
        attended: false,
        generation: None,
        unusable: None,
    };
    bench.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
    let wait = |name: &str| {
        let names = vec![name.to_owned()];
        move |call| Command::Wait { call, caller, request_id: names.concat(), names, any: false, tell_later: false, timeout_ms: None }
    };
    let (a, _) = spawned(&bench.ask(wait("a"))).map(|(of, _)| (of, ())).expect("the slot is lent");
    bench.step(Command::Spawned { incarnation: a, process: process(a) });
    bench.ask(wait("b"));
    let stepped = bench.exits(a);
    let (b, _) = spawned(&stepped).expect("the queue goes first");
    assert!(!stepped.effects.iter().any(|effect| matches!(effect, Effect::Reply { .. })), "it has no slot to go on with");
    bench.step(Command::Spawned { incarnation: b, process: process(b) });
    let stepped = bench.exits(b);
    let replies: Vec<_> =
        stepped.effects.iter().filter(|effect| matches!(effect, Effect::Reply { reply: Reply::Ends { .. }, .. })).collect();
    assert_eq!(replies.len(), 2, "{:?}", stepped.effects);
    let Caller::Worker { worker, .. } = caller else { panic!("a worker") };
    assert_eq!(bench.broker.state().workers[&worker].phase, Phase::Running);
}

#[test]
fn an_acknowledgement_takes_what_there_is_and_says_what_is_gone() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(Caller::Root(TREE), "parent");
    let caller = bench.worker(parent);
    let child = bench.launch(caller, "child");
    bench.exits(child);
    let stepped =
        bench.ask(|call| Command::Speak { call, caller, lease: None, speak: Box::new(Speak::Ack { items: vec![u64::MAX, 1, 1] }) });
    let acked = Reply::Acked { accepted: vec![1], gone: vec![u64::MAX] };
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: acked }), "{:?}", stepped.effects);
    let Caller::Worker { worker, .. } = caller else { panic!("a worker") };
    assert!(bench.broker.state().workers[&worker].outbox.is_empty());
}

#[test]
fn what_the_world_has_against_a_launch_holds_for_a_new_one_alone() {
    let mut bench = Bench::new(2);
    let cwd = Rejection::BadCwd { what: "task 0: the working directory `/x` cannot be used: it is gone".into() };
    let launch = |request_id: &str, digest, unusable| {
        let task = Task {
            name: None,
            stem: "w".into(),
            token: Token::new(TOKEN),
            allowance: Allowance::Exactly(0),
            runner: Runner::Command,
            group: None,
            timeout_ms: None,
        };
        let request_id = request_id.to_owned();
        let tasks = vec![task];
        Box::new(Launch { request_id, digest: Digest(digest), tasks, foreground: false, attended: false, generation: None, unusable })
    };
    let mut ask = |launch| bench.ask(|call| Command::Launch { call, caller: Caller::Root(TREE), launch });
    let receipt = |stepped: &Stepped| {
        stepped.effects.iter().find_map(|effect| {
            if let Effect::Reply { reply: reply @ Reply::Receipt { .. }, .. } = effect { Some(reply.clone()) } else { None }
        })
    };
    let refusal = |stepped: &Stepped| {
        stepped.effects.iter().find_map(|effect| if let Effect::Refuse { rejection, .. } = effect { Some(rejection.clone()) } else { None })
    };
    // A new one is refused and records nothing.
    let refused = ask(launch("r", 1, Some(cwd.clone())));
    assert_eq!((refusal(&refused), refused.records.len()), (Some(cwd.clone()), 0));
    // It took nothing: the same request is accepted once the directory is there.
    let first = receipt(&ask(launch("r", 1, None)));
    assert!(first.is_some());
    // A repeat is answered as the first time, and records nothing.
    let again = ask(launch("r", 1, Some(cwd.clone())));
    assert_eq!((receipt(&again), again.records.len()), (first, 0));
    // With other content it is an error, as ever.
    let other = refusal(&ask(launch("r", 2, Some(cwd))));
    assert_eq!(other, Some(Rejection::RequestIdReused { request_id: "r".into() }));
}
