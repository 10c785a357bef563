//! Ends that a whole daemon or a whole tree comes to: drains, operators, interrupts of a part.

mod bench;

use bench::settings;
use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Allowance, CallId, Caller, Command, Launch, Open, Task};
use roost_core::effect::{Effect, OwedKind, Reply};
use roost_core::event::{Context, Digest, InterruptScope, Place, Runner, Settings};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};

const TREE: TreeId = TreeId(7);

/// A broker and the next numbers of its calls and moments.
struct Bench {
    broker: Broker,
    call: u64,
    now: u64,
}

impl Bench {
    fn new(interrupt_scope: InterruptScope) -> Self {
        let mut bench = Self { broker: Broker::restore(State::default(), None), call: 0, now: 0 };
        let settings = Settings { interrupt_scope, ..settings() };
        let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "o".into(), key: None, ephemeral: false, settings };
        bench.ask(|call| Command::Open { call, open: Box::new(open) });
        bench
    }

    fn step(&mut self, command: Command) -> Stepped {
        self.now += 1;
        self.broker.step(Now { mono: Mono(self.now), wall_ms: 0 }, command).expect("no fault of the core")
    }

    fn ask(&mut self, command: impl FnOnce(CallId) -> Command) -> (CallId, Stepped) {
        self.call += 1;
        let call = CallId(self.call);
        (call, self.step(command(call)))
    }

    /// Launches one worker and says that its process runs.
    fn launch(&mut self, caller: Caller, name: &str, attended: bool) -> Incarnation {
        let task = Task {
            name: Some(name.into()),
            stem: String::new(),
            token: Token::new([2; 16]),
            allowance: Allowance::Exactly(if name == "parent" { 3 } else { 0 }),
            runner: Runner::Command,
            group: None,
            timeout_ms: None,
        };
        let launch = Launch {
            request_id: name.into(),
            digest: Digest(0),
            tasks: vec![task],
            foreground: false,
            attended,
            generation: None,
            unusable: None,
        };
        let (_, stepped) = self.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
        let spawn =
            stepped.effects.iter().find_map(|effect| if let Effect::Spawn(spawn) = effect { Some(spawn.incarnation) } else { None });
        let incarnation = spawn.expect("a slot is free");
        let pid = u32::try_from(incarnation.execution.0).expect("small") + 100;
        self.step(Command::Spawned { incarnation, process: ProcessIdentity { pid, start_ticks: 1 } });
        incarnation
    }

    fn wait(&mut self, names: &[&str]) -> (CallId, Stepped) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let request_id = format!("wait-{}", self.call);
        self.ask(|call| Command::Wait {
            call,
            caller: Caller::Root(TREE),
            request_id,
            names,
            any: false,
            tell_later: false,
            timeout_ms: None,
        })
    }

    fn worker(&self, incarnation: Incarnation) -> Caller {
        Caller::Worker { worker: self.broker.state().executions[&incarnation.execution], epoch: incarnation.epoch }
    }
}

fn refusal(stepped: &Stepped, of: CallId) -> Option<&Rejection> {
    stepped.effects.iter().find_map(
        |effect| {
            if let Effect::Refuse { call, rejection } = effect { (*call == of).then_some(rejection) } else { None }
        },
    )
}

fn reply(stepped: &Stepped, of: CallId) -> Option<&Reply> {
    stepped.effects.iter().find_map(|effect| if let Effect::Reply { call, reply } = effect { (*call == of).then_some(reply) } else { None })
}

#[test]
fn whoever_still_waits_when_the_daemon_leaves_hears_why() {
    let mut bench = Bench::new(InterruptScope::All);
    let parent = bench.launch(Caller::Root(TREE), "parent", false);
    let caller = bench.worker(parent);
    let child = bench.launch(caller, "child", false);
    let context = Context { digest: Digest(1), bytes: 0, place: Place::Journal };
    bench.ask(|call| Command::Park { call, caller, context });
    bench.step(Command::Exited { incarnation: parent, status: ExitStatus::Code(0), leftovers: Vec::new() });
    let (waiting, _) = bench.wait(&["parent"]);
    let (drain, stepped) = bench.ask(|call| Command::Drain { call: Some(call), now: false, timeout_ms: None });
    assert_eq!(reply(&stepped, drain), None, "a child is live");
    let stepped = bench.step(Command::Exited { incarnation: child, status: ExitStatus::Code(0), leftovers: Vec::new() });
    assert_eq!(reply(&stepped, drain), Some(&Reply::Drained { stopped: 0 }));
    assert_eq!(refusal(&stepped, waiting), Some(&Rejection::Draining));
    assert!(stepped.effects.contains(&Effect::Leave));
    assert!(!stepped.effects.iter().any(|effect| matches!(effect, Effect::Spawn(_))), "the parent wakes at the next start");
}

/// Where nothing is live a drain has come to pass, however little time it was given.
#[test]
fn a_drain_without_time_is_called_off_only_by_what_is_live() {
    let mut bench = Bench::new(InterruptScope::All);
    let worker = bench.launch(Caller::Root(TREE), "w", false);
    let drain = |call| Command::Drain { call: Some(call), now: false, timeout_ms: Some(0) };
    let (call, stepped) = bench.ask(drain);
    assert!(matches!(refusal(&stepped, call), Some(Rejection::StillRunning { live: 1, .. })));
    bench.step(Command::Exited { incarnation: worker, status: ExitStatus::Code(0), leftovers: Vec::new() });
    let (call, stepped) = bench.ask(drain);
    assert_eq!(reply(&stepped, call), Some(&Reply::Drained { stopped: 0 }));
}

#[test]
fn a_lead_is_told_of_a_child_that_somebody_else_has_stopped() {
    let mut bench = Bench::new(InterruptScope::All);
    let parent = bench.launch(Caller::Root(TREE), "parent", false);
    let caller = bench.worker(parent);
    let child = bench.launch(caller, "child", false);
    bench.ask(|call| Command::Park { call, caller, context: Context { digest: Digest(1), bytes: 0, place: Place::Journal } });
    bench.step(Command::Exited { incarnation: parent, status: ExitStatus::Code(0), leftovers: Vec::new() });
    bench.ask(|call| Command::Drain { call: Some(call), now: true, timeout_ms: None });
    bench.step(Command::Exited { incarnation: child, status: ExitStatus::Signal(15), leftovers: Vec::new() });
    // The next start of the broker, over the same state.
    let mut next = Bench { broker: Broker::restore(bench.broker.state().clone(), None), call: 100, now: bench.now };
    let stepped = next.step(Command::Reconcile { children: Vec::new() });
    let wake = stepped.effects.iter().find_map(|effect| if let Effect::Spawn(spawn) = effect { spawn.wake.as_ref() } else { None });
    let wake = wake.expect("the parked parent is woken");
    let names: Vec<&str> = wake
        .items
        .iter()
        .filter_map(|item| if let OwedKind::Completion(end) = &item.what { Some(end.name.as_str()) } else { None })
        .collect();
    assert_eq!(names, ["child"]);
}

#[test]
fn an_interrupt_reaches_what_the_tree_says() {
    for (scope, expected) in [(InterruptScope::All, 2), (InterruptScope::Foreground, 1), (InterruptScope::None, 0)] {
        let mut bench = Bench::new(scope);
        let attended = bench.launch(Caller::Root(TREE), "attended", true);
        bench.launch(Caller::Root(TREE), "background", false);
        let (call, stepped) = bench.ask(|call| Command::Interrupt { call, caller: Caller::Root(TREE), request_id: None, no_wait: true });
        let Some(Reply::Interrupted { stopped, .. }) = reply(&stepped, call) else { panic!("{scope:?}: {stepped:?}") };
        assert_eq!(*stopped, expected, "{scope:?}");
        let signalled =
            stepped.effects.iter().any(|effect| matches!(effect, Effect::Signal { incarnation, .. } if *incarnation == attended));
        assert_eq!(signalled, expected > 0, "{scope:?}");
    }
}
