//! What one step costs does not grow with how many workers are queued, ended, waiting, lent or back from a wait, nor with how many
//! trees are closed.
//!
//! It measures time, so it does not run with the others: `cargo test --release -p roost-tests --test flat -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Role, Settle, Speak, Task};
use roost_core::effect::Effect;
use roost_core::event::{Context, Digest, Place, Runner, Settings};
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_tests::sim::table::settings;

const TREE: TreeId = TreeId(7);
const PROBES: u32 = 1_000;

struct Bench {
    broker: Broker,
    call: u64,
    now: u64,
    running: std::collections::VecDeque<Incarnation>,
}

impl Bench {
    fn new(cap: u32) -> Self {
        let mut bench = Self { broker: Broker::restore(State::default(), None), call: 0, now: 0, running: Default::default() };
        bench.open(TREE, cap);
        bench
    }

    fn open(&mut self, tree: TreeId, cap: u32) {
        let settings = Settings { cap, budget: 10_000_000, ..settings() };
        let open = Open { tree, token: Token::new([1; 16]), request_id: tree.to_string(), key: None, ephemeral: false, settings };
        self.ask(|call| Command::Open { call, open: Box::new(open) });
    }

    /// A step, and the reports of the starts that came of it.
    fn step(&mut self, command: Command) -> Stepped {
        self.now += 1;
        let moment = Now { mono: Mono(self.now), wall_ms: 0 };
        let stepped = self.broker.step(moment, command).expect("no fault of the core");
        self.broker.next_deadline();
        for effect in &stepped.effects {
            let Effect::Spawn(spawn) = effect else { continue };
            let incarnation = spawn.incarnation;
            self.running.push_back(incarnation);
            let pid = u32::try_from(incarnation.execution.0).expect("small");
            let process = ProcessIdentity { pid, start_ticks: 1 };
            self.broker.step(moment, Command::Spawned { incarnation, process }).expect("no fault of the core");
        }
        stepped
    }

    fn ask(&mut self, command: impl FnOnce(CallId) -> Command) -> Stepped {
        self.call += 1;
        let call = CallId(self.call);
        self.step(command(call))
    }

    fn launch(&mut self, caller: Caller, tasks: usize, allowance: u64) {
        self.launch_as(caller, tasks, allowance, false);
    }

    /// A worker that speaks connects, takes its task in, and ends its turn.
    fn settle(&mut self, of: Incarnation) {
        let caller = self.caller(of);
        let Caller::Worker { worker, epoch } = caller else { panic!("a worker") };
        let pid = u32::try_from(of.execution.0).expect("small");
        let role = Some(Role::Voice { can_park: true, steers: true });
        let claim = Claim {
            tree: TREE,
            worker: Some(worker),
            token: Token::new([2; 16]),
            epoch: Some(epoch),
            lineage: vec![ProcessIdentity { pid, start_ticks: 1 }],
            role,
        };
        self.ask(|call| Command::Hello { call, claim: Some(claim) });
        let context = Some(Context { digest: Digest(1), bytes: 0, place: Place::Journal });
        let settle = Settle {
            request_id: "settle".into(),
            answered: true,
            context,
            aborted: false,
            error: None,
            wrapped_up: false,
            truncated: false,
            usage: None,
        };
        for speak in [Speak::Ack { request_id: None, items: vec![1] }, Speak::Settle { settle }] {
            self.ask(|call| Command::Speak { call, caller, lease: Some(1), speak: Box::new(speak) });
        }
    }

    fn launch_as(&mut self, caller: Caller, tasks: usize, allowance: u64, speaks: bool) {
        let task = || Task {
            name: None,
            stem: "w".into(),
            token: Token::new([2; 16]),
            allowance: Allowance::Exactly(allowance),
            runner: if speaks { Runner::Worker } else { Runner::Command },
            group: None,
            timeout_ms: None,
        };
        let tasks = (0..tasks).map(|_| task()).collect();
        let request_id = format!("q{}", self.call);
        let launch = Launch { request_id, digest: Digest(0), tasks, foreground: false, attended: false, generation: None, unusable: None };
        self.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
    }

    fn wait(&mut self, caller: Caller, timeout_ms: Option<u64>) {
        let request_id = "wait".to_owned();
        self.ask(|call| Command::Wait { call, caller, request_id, names: Vec::new(), any: false, tell_later: false, timeout_ms });
    }

    fn exit_next(&mut self) {
        let incarnation = self.running.pop_front().expect("somebody runs");
        self.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: Vec::new() });
    }

    fn caller(&self, incarnation: Incarnation) -> Caller {
        Caller::Worker { worker: self.broker.state().executions[&incarnation.execution], epoch: incarnation.epoch }
    }

    /// A launch, a start and an end, many times: what one round takes.
    fn probe(&mut self) -> Duration {
        let begun = Instant::now();
        for _ in 0..PROBES {
            self.launch(Caller::Root(TREE), 1, 0);
            if !self.running.is_empty() {
                self.exit_next();
            }
            self.ask(|call| Command::Count { call, caller: Caller::Root(TREE) });
        }
        begun.elapsed() / PROBES
    }
}

/// Makes a broker with so many of something.
type Make = fn(u32) -> Bench;

fn queued(n: u32) -> Bench {
    let mut bench = Bench::new(8);
    (0..n / 20).for_each(|_| bench.launch(Caller::Root(TREE), 20, 0));
    bench
}

fn ended(n: u32) -> Bench {
    let mut bench = queued(n);
    (0..n).for_each(|_| bench.exit_next());
    bench
}

/// So many settled workers that wait for a child each.
fn waiting(n: u32) -> Bench {
    let mut bench = Bench::new(100_000);
    for _ in 0..n / 2 {
        bench.launch_as(Caller::Root(TREE), 1, 1, true);
        let lead = bench.running.pop_back().expect("the cap is large");
        bench.launch(bench.caller(lead), 1, 0);
        bench.running.pop_back();
        bench.settle(lead);
    }
    bench.running.clear();
    bench.ask(|call| Command::Cap { call, caller: Caller::Root(TREE), cap: Some(100_000) });
    bench
}

/// So many leads that wait in a call for a child that has their slot.
fn lent(n: u32) -> Bench {
    let mut bench = Bench::new(n / 2);
    (0..n / 2).for_each(|_| bench.launch(Caller::Root(TREE), 1, 1));
    let leads: Vec<Incarnation> = bench.running.drain(..).collect();
    for lead in leads {
        let caller = bench.caller(lead);
        bench.launch(caller, 1, 0);
        bench.wait(caller, None);
    }
    assert_eq!(bench.broker.state().workers.values().filter(|worker| worker.is_lent()).count(), n as usize / 2);
    bench.running.clear();
    bench.ask(|call| Command::Cap { call, caller: Caller::Root(TREE), cap: Some(100_000) });
    bench
}

/// So many leads whose wait has run out of its time, beside children that go on.
fn waited(n: u32) -> Bench {
    let mut bench = Bench::new(100_000);
    for _ in 0..n / 2 {
        bench.launch(Caller::Root(TREE), 1, 1);
        let lead = bench.running.pop_back().expect("the cap is large");
        let caller = bench.caller(lead);
        bench.launch(caller, 1, 0);
        bench.running.pop_back();
        bench.wait(caller, Some(1));
    }
    bench.running.clear();
    bench
}

fn closed_trees(n: u32) -> Bench {
    let mut bench = Bench::new(8);
    for tree in 0..u64::from(n) {
        bench.open(TreeId(1_000 + tree), 1);
        bench.ask(|call| Command::Close { call, caller: Caller::Root(TreeId(1_000 + tree)), now: false });
    }
    bench
}

#[test]
#[ignore = "measures time"]
fn a_step_costs_the_same_however_many_there_are() {
    let kinds: [(&str, Make); 6] = [
        ("queued", queued),
        ("ended", ended),
        ("waiting", waiting),
        ("lent", lent),
        ("waits over", waited),
        ("closed trees", closed_trees),
    ];
    let mut grown = Vec::new();
    for (kind, make) in kinds {
        let mut times = Vec::new();
        for n in [1_000, 10_000, 100_000] {
            let mut bench = make(n);
            bench.probe();
            times.push(bench.probe());
        }
        println!("{kind:<14} 1k {:?}, 10k {:?}, 100k {:?}", times[0], times[1], times[2]);
        if times[2] > times[0] * 8 {
            grown.push(kind);
        }
    }
    assert!(grown.is_empty(), "a step grows with the number of {grown:?}");
}
