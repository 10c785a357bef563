//! A broker with one tree, a step at a time: what the tests of the core share.

// Each test of the core uses its own part of it.
#![allow(dead_code)]

use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Role, Settle, Speak, Task};
use roost_core::effect::{Delivery as Delivered, Effect, Owed, OwedKind, Wake};
use roost_core::event::{Context, Delivery, Digest, InterruptScope, Join, Place, Runner, Settings, Timing};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::state::worker::{Phase, Worker};
use roost_core::time::{Mono, Now};
use roost_proto::id::{Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity, Signal};

pub const TREE: TreeId = TreeId(7);
pub const ROOT: Caller = Caller::Root(TREE);
pub const CONTEXT: Context = Context { digest: Digest(1), bytes: 0, place: Place::Journal };
pub const TOKEN: [u8; 16] = [2; 16];

/// A broker with one tree, and the next numbers of its calls and moments.
pub struct Bench {
    pub broker: Broker,
    pub call: u64,
    pub now: u64,
}

impl Bench {
    pub fn new(cap: u32) -> Self {
        Self::of(Settings { cap, ..settings() })
    }

    pub fn of(settings: Settings) -> Self {
        let mut bench = Self { broker: Broker::restore(State::default(), None), call: 0, now: 0 };
        let open = Open { tree: TREE, token: Token::new([1; 16]), request_id: "o".into(), key: None, ephemeral: false, settings };
        bench.ask(|call| Command::Open { call, open: Box::new(open) });
        bench
    }

    pub fn step(&mut self, command: Command) -> Stepped {
        self.now += 1;
        self.broker.step(Now { mono: Mono(self.now), wall_ms: 0 }, command).expect("no fault of the core")
    }

    pub fn ask(&mut self, command: impl FnOnce(CallId) -> Command) -> Stepped {
        self.call += 1;
        let call = CallId(self.call);
        self.step(command(call))
    }

    /// The broker of the next life, over the state that this one has left.
    pub fn restart(&mut self) {
        self.broker = Broker::restore(self.broker.state().clone(), None);
    }

    /// As the state is of a journal whose build did not note what the process of a worker has done before its hello.
    pub fn forget_acts(&mut self, of: Incarnation) {
        let mut state = self.broker.state().clone();
        let worker = state.executions[&of.execution];
        state.workers.get_mut(&worker).and_then(|worker| worker.speech.as_mut()).expect("it speaks").acted = false;
        self.broker = Broker::restore(state, None);
    }

    /// Launches one worker; whoever speaks says so by its name.
    pub fn asks_for(&mut self, caller: Caller, name: &str) -> Stepped {
        let launch = Launch {
            request_id: name.into(),
            digest: Digest(0),
            tasks: vec![task(caller, name)],
            foreground: false,
            attended: false,
            generation: None,
            unusable: None,
        };
        self.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) })
    }

    /// Launches one that gets its slot and its process at once.
    pub fn launch(&mut self, caller: Caller, name: &str) -> Incarnation {
        let stepped = self.asks_for(caller, name);
        self.starts(&stepped)
    }

    /// Launches one that finds no free slot.
    pub fn queue(&mut self, caller: Caller, name: &str) {
        let stepped = self.asks_for(caller, name);
        assert_eq!((refusal(&stepped), spawned(&stepped)), (None, None));
    }

    /// Launches one that speaks; it has said hello and taken its task in.
    pub fn speaker(&mut self, caller: Caller, name: &str) -> Incarnation {
        let incarnation = self.launch(caller, name);
        self.hello(incarnation);
        self.speaks(incarnation, ack(&[1]));
        incarnation
    }

    pub fn waits(&mut self, caller: Caller, name: &str, timeout_ms: Option<u64>) -> Stepped {
        let (names, request_id) = (vec![name.to_owned()], format!("wait-{name}"));
        self.ask(|call| Command::Wait { call, caller, request_id, names, any: false, tell_later: false, timeout_ms })
    }

    /// Lets so much time pass.
    pub fn pass(&mut self, ms: u64) -> Stepped {
        self.now += ms - 1;
        self.step(Command::Tick)
    }

    pub fn record(&self, of: Incarnation) -> &Worker {
        &self.broker.state().workers[&self.broker.state().executions[&of.execution]]
    }

    pub fn phase(&self, of: Incarnation) -> &Phase {
        &self.record(of).phase
    }

    /// The process of the next start of somebody.
    pub fn starts(&mut self, stepped: &Stepped) -> Incarnation {
        let incarnation = spawned(stepped).expect("it is started").0;
        self.step(Command::Spawned { incarnation, process: process(incarnation) });
        incarnation
    }

    pub fn exits(&mut self, incarnation: Incarnation) -> Stepped {
        self.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: Vec::new() })
    }

    pub fn caller(&self, incarnation: Incarnation) -> Caller {
        Caller::Worker { worker: self.record(incarnation).id, epoch: incarnation.epoch }
    }

    /// A process says hello; as the voice of its worker, where that speaks.
    pub fn hello(&mut self, incarnation: Incarnation) -> Stepped {
        let speaks = self.record(incarnation).speaks();
        self.hello_as(incarnation, speaks.then_some(Role::Voice { can_park: true, steers: true }))
    }

    pub fn hello_as(&mut self, incarnation: Incarnation, role: Option<Role>) -> Stepped {
        let claim = Claim {
            tree: TREE,
            worker: Some(self.record(incarnation).id),
            token: Token::new(TOKEN),
            epoch: Some(incarnation.epoch),
            lineage: vec![process(incarnation)],
            role,
        };
        self.ask(|call| Command::Hello { call, claim: Some(claim) })
    }

    pub fn speaks(&mut self, incarnation: Incarnation, speak: Speak) -> Stepped {
        let caller = self.caller(incarnation);
        let lease = self.record(incarnation).speech.as_ref().map(|speech| speech.lease);
        self.ask(|call| Command::Speak { call, caller, lease, speak: Box::new(speak) })
    }

    pub fn settles(&mut self, incarnation: Incarnation) -> Stepped {
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

/// What a tree is opened with.
pub fn settings() -> Settings {
    Settings {
        cap: 4,
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
    }
}

pub fn task(caller: Caller, name: &str) -> Task {
    Task {
        name: Some(name.into()),
        stem: String::new(),
        token: Token::new(TOKEN),
        allowance: Allowance::Exactly(if caller == ROOT { 3 } else { 0 }),
        runner: if name.starts_with("speaker") { Runner::Worker } else { Runner::Command },
        group: None,
        timeout_ms: None,
    }
}

pub fn ack(items: &[u64]) -> Speak {
    Speak::Ack { request_id: None, items: items.to_vec() }
}

pub fn process(incarnation: Incarnation) -> ProcessIdentity {
    let pid = u32::try_from(incarnation.execution.0).expect("small") * 100 + incarnation.epoch.0;
    ProcessIdentity { pid, start_ticks: 1 }
}

/// What a process of the root says that takes its lease.
pub fn root_claim(pid: u32) -> Claim {
    let lineage = vec![ProcessIdentity { pid, start_ticks: 1 }];
    Claim { tree: TREE, worker: None, token: Token::new([1; 16]), epoch: None, lineage, role: Some(Role::Root) }
}

pub fn spawned(stepped: &Stepped) -> Option<(Incarnation, Option<&Wake>)> {
    stepped.effects.iter().find_map(
        |effect| {
            if let Effect::Spawn(spawn) = effect { Some((spawn.incarnation, spawn.wake.as_ref())) } else { None }
        },
    )
}

/// The names of those whose ends are among these items.
pub fn ends(items: &[Owed]) -> Vec<String> {
    items.iter().filter_map(|item| if let OwedKind::Completion(end) = &item.what { Some(end.name.clone()) } else { None }).collect()
}

pub fn names(wake: Option<&Wake>) -> Vec<String> {
    ends(&wake.expect("a wake").items)
}

pub fn deliveries(stepped: &Stepped) -> Vec<&Delivered> {
    stepped.effects.iter().filter_map(|effect| if let Effect::Deliver(delivery) = effect { Some(&**delivery) } else { None }).collect()
}

pub fn delivered(stepped: &Stepped) -> Option<Vec<String>> {
    stepped.effects.iter().find_map(|effect| if let Effect::Deliver(delivery) = effect { Some(ends(&delivery.items)) } else { None })
}

pub fn signals(stepped: &Stepped) -> Vec<Signal> {
    stepped.effects.iter().filter_map(|effect| if let Effect::Signal { signal, .. } = effect { Some(*signal) } else { None }).collect()
}

pub fn refusal(stepped: &Stepped) -> Option<Rejection> {
    stepped.effects.iter().find_map(|effect| if let Effect::Refuse { rejection, .. } = effect { Some(rejection.clone()) } else { None })
}
