//! Scenarios written as text.

use std::collections::BTreeMap;

use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Task};
use roost_core::effect::{End, Reply};
use roost_core::event::{Context, Digest, Settings};
use roost_core::state::worker::{Phase, Worker};
use roost_core::view;
use roost_proto::id::{Epoch, TreeId};
use roost_proto::link::ExitStatus;

use super::Checked;
use super::plan::{Gather, Op, Plan, Program, Which};
use super::rng::Rng;
use super::run::{finish, standing};
use super::script::{Progress, token_of};
use super::world::{Action, Answer, World};

/// What holds for a tree when nothing else is said.
pub(crate) fn settings() -> Settings {
    Settings {
        interrupt_scope: roost_core::event::InterruptScope::All,
        cap: 8,
        budget: 50,
        lend_slots: true,
        end_leftovers: true,
        adopt_orphans: false,
        stop_grace_ms: 5_000,
        depth_max: 64,
        group_caps: Vec::new(),
    }
}

/// One thing that a client does, from its words.
pub(crate) fn op(text: &str) -> Checked<Op> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let nth = |at: usize| usize::try_from(number(at)).unwrap_or(0);
    Ok(match words.first().copied().unwrap_or("") {
        "open" => Op::Open,
        "launch" => Op::Launch { tasks: number(1), foreground: false },
        "run" => Op::Launch { tasks: number(1), foreground: true },
        "wait-any" => Op::Wait { which: Which::Any, timeout_ms: None },
        "wait-all" => Op::Wait { which: Which::All, timeout_ms: None },
        "wait" => Op::Wait { which: Which::Nth(nth(1)), timeout_ms: None },
        "background" => Op::Background { nth: nth(1) },
        "stop" => Op::Stop { nth: nth(1) },
        "park" => Op::Park,
        "gather-wait" => Op::Gather(Gather::Wait),
        "gather-park" => Op::Gather(Gather::Park),
        "gather-settle" => Op::Gather(Gather::Settle),
        "cap" => Op::Cap(u32::try_from(number(1)).unwrap_or(1)),
        "pause" => Op::Pause(true),
        "resume" => Op::Pause(false),
        "interrupt" => Op::Interrupt,
        "close" => Op::Close { now: false },
        other => return Err(format!("nobody knows how to {other}")),
    })
}

/// A scenario being played: the world, and the numbers behind the names.
struct Table {
    world: World,
    tree: TreeId,
    calls: u64,
    /// The newest call of each caller.
    newest: BTreeMap<String, u64>,
    requests: u64,
}

/// Plays a scenario: one line after the other; what has no choice happens by itself. An error names the line.
pub fn play(text: &str) -> Checked {
    let mut settings = settings();
    let lines = || {
        text.lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()))
            .filter(|(_, line)| !line.is_empty())
    };
    for (_, line) in lines().filter(|(_, line)| line.starts_with("tree ")) {
        line.split_whitespace().skip(1).try_for_each(|word| set(&mut settings, word))?;
    }
    let plan = Plan { seed: 1, tidy: true, fixed: BTreeMap::from([("*".into(), Program::plain(Vec::new(), 0))]) };
    let world = World::new(plan, vec![settings.clone()], None)?;
    let mut table = Table { world, tree: TreeId(100), calls: 0, newest: BTreeMap::new(), requests: 0 };
    let open = Open { tree: table.tree, token: token_of(100), request_id: "open".into(), key: None, ephemeral: false, settings };
    table.world.step(Command::Open { call: CallId(0), open: Box::new(open) })?;
    table.pump()?;
    for (at, line) in lines().filter(|(_, line)| !line.starts_with("tree ")) {
        table.line(line).and_then(|()| table.pump()).map_err(|why| format!("line {at}, `{line}`: {why}{}", standing(&table.world)))?;
    }
    Ok(())
}

fn set(settings: &mut Settings, word: &str) -> Checked {
    let (key, value) = word.split_once('=').ok_or_else(|| format!("not a setting: {word}"))?;
    let number = value.parse::<u64>().unwrap_or(0);
    let small = u32::try_from(number).unwrap_or(u32::MAX);
    match key {
        "cap" => settings.cap = small,
        "budget" => settings.budget = number,
        "lend" => settings.lend_slots = value == "yes",
        "leftovers" => settings.end_leftovers = value == "end",
        "orphans" => settings.adopt_orphans = value == "adopt",
        "grace" => settings.stop_grace_ms = number,
        "group" => settings.group_caps = vec![("writers".into(), small)],
        other => return Err(format!("there is no setting {other}")),
    }
    Ok(())
}

impl Table {
    fn pump(&mut self) -> Checked {
        loop {
            let inner = |action: &&Action| matches!(action, Action::Commit | Action::Order | Action::Report);
            let Some(action) = self.world.actions().iter().find(inner).copied() else { return Ok(()) };
            self.world.perform(action)?;
        }
    }

    fn worker(&self, name: &str) -> Checked<&Worker> {
        self.world.state().workers.values().find(|worker| &*worker.name == name).ok_or_else(|| format!("there is no {name}"))
    }

    fn caller(&self, name: &str) -> Checked<Caller> {
        if name == "root" {
            return Ok(Caller::Root(self.tree));
        }
        self.worker(name).map(|worker| Caller::Worker { worker: worker.id, epoch: worker.epoch })
    }

    fn line(&mut self, line: &str) -> Checked {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(line) = line.strip_prefix("tree-key ") {
            self.calls += 1;
            let open = Open { ephemeral: true, ..self.open(TreeId(200), "keyed".into(), Some(line))? };
            self.world.step(Command::Open { call: CallId(self.calls), open: Box::new(open) })?;
            self.tree = TreeId(200);
            return Ok(());
        }
        let owned = |from: usize| words.iter().skip(from).map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        match (words[0], words.get(1).copied().unwrap_or("")) {
            ("expect", _) => return words.iter().skip(1).try_for_each(|word| self.expect(word)),
            ("told", name) => return self.told(name, &owned(2)),
            ("refused", name) => return self.refused(name, words.get(2).copied().unwrap_or("")),
            ("waiting", name) => {
                let call = self.newest.get(name).copied().unwrap_or(0);
                return if self.world.answers.contains_key(&call) { Err(format!("{name} has its answer")) } else { Ok(()) };
            }
            ("time", _) => return self.world.perform(Action::Pass(number(1))),
            ("crash", "broker") => return self.world.perform(Action::CrashBroker { answers_arrive: false }),
            ("crash", "supervisor") => return self.world.perform(Action::CrashSupervisor),
            ("abandon", name) => {
                let call = CallId(self.newest.get(name).copied().unwrap_or(0));
                return self.world.step(Command::Abandon { calls: vec![call] });
            }
            _ => {}
        }
        let incarnation = self.worker(words[0]).map(Worker::incarnation);
        let context = Context { digest: Digest(7), bytes: 1 };
        match words[1] {
            "exits" => self.world.end_process(incarnation?, ExitStatus::Code(i32::try_from(number(2)).unwrap_or(1)), false),
            "dies" => self.world.end_process(incarnation?, ExitStatus::Signal(i32::try_from(number(2)).unwrap_or(9)), false),
            "leaves" => self.world.end_process(incarnation?, ExitStatus::Code(0), true),
            "emptied" => self.world.perform(Action::Emptied(incarnation?))?,
            "settles" => self.world.step(Command::Settle { incarnation: incarnation?, context })?,
            "ready" => self.world.step(Command::ParkReady { incarnation: incarnation?, context })?,
            "declines" => self.world.step(Command::ParkDecline { incarnation: incarnation?, not_before_ms: number(2) })?,
            "acks" => self.world.step(Command::Ack { incarnation: incarnation?, last: number(2) })?,
            _ => return self.call(&words),
        }
        Ok(())
    }

    fn call(&mut self, words: &[&str]) -> Checked {
        let caller = self.caller(words[0])?;
        self.calls += 1;
        self.requests += 1;
        let call = CallId(self.calls);
        let (option, names): (Vec<&str>, Vec<&str>) = words.iter().skip(2).partition(|word| word.contains('='));
        let option = |key: &str| option.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        self.newest.insert(option("as").unwrap_or(words[0]).to_owned(), self.calls);
        let request_id = option("id").map_or_else(|| format!("q{}", self.requests), str::to_owned);
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let number = names.first().and_then(|word| word.parse::<u32>().ok());
        let command = match words[1] {
            "launch" | "run" => {
                let tasks = names.iter().map(|word| task(word, option("timeout"))).collect();
                let digest = Digest(u128::from(names.concat().len() as u64));
                let launch = Launch {
                    attended: false,
                    request_id,
                    digest,
                    tasks,
                    foreground: words[1] == "run",
                    generation: option("generation").and_then(|n| n.parse().ok()),
                };
                Command::Launch { call, caller, launch: Box::new(launch) }
            }
            "waits" => Command::Wait {
                call,
                caller,
                request_id,
                names: owned,
                any: false,
                timeout_ms: option("timeout").and_then(|n| n.parse().ok()),
            },
            "waits-any" => Command::Wait { call, caller, request_id, names: owned, any: true, timeout_ms: None },
            "hello" => Command::Hello { call, claim: Some(self.claim(words[0], option("token"), option("epoch"))?) },
            "drains" => Command::Drain { call: Some(call), now: false, timeout_ms: option("timeout").and_then(|n| n.parse().ok()) },
            "opens" => Command::Open { call, open: Box::new(self.open(TreeId(200 + self.calls), request_id, option("key"))?) },
            "is-there" => Command::RootPresence { tree: self.tree, connections: number.unwrap_or(0) },
            "reads" => Command::Result { call, caller, tree: None, name: names.concat(), wait: false, timeout_ms: None },
            "stop" => Command::Stop { call, caller, names: owned, no_wait: false },
            "interrupt" => Command::Interrupt { call, caller, no_wait: false },
            "cap" => Command::Cap { call, caller, cap: number },
            "pause" => Command::Pause { call, caller, paused: true },
            "resume" => Command::Pause { call, caller, paused: false },
            "close" => Command::Close { call, caller, now: false },
            "parks" => Command::Park { call, caller, context: Context { digest: Digest(7), bytes: 1 } },
            other => return Err(format!("nobody knows how to {other}")),
        };
        self.world.contexts.insert(7, Progress::default());
        self.world.step(command)
    }

    /// What a process of this worker says in its hello, or an impostor does.
    fn claim(&self, name: &str, token: Option<&str>, epoch: Option<&str>) -> Checked<Claim> {
        let right = if name == "root" { token_of(100) } else { self.worker(name)?.token };
        let token = if token == Some("wrong") { token_of(999) } else { right };
        if name == "root" {
            return Ok(Claim { tree: self.tree, worker: None, token, epoch: None, lineage: vec![1] });
        }
        let worker = self.worker(name)?;
        let epoch = epoch.map_or(Ok(worker.epoch.0), str::parse).map_err(|error| error.to_string())?;
        let pid = worker.process.map_or(0, |process| process.pid);
        Ok(Claim { tree: self.tree, worker: Some(worker.id), token, epoch: Some(Epoch(epoch)), lineage: vec![pid] })
    }

    /// A tree like the one of the scenario.
    fn open(&self, tree: TreeId, request_id: String, key: Option<&str>) -> Checked<Open> {
        let like = self.world.state().trees.get(&self.tree).ok_or("the tree is gone")?;
        let settings = like.settings.clone();
        Ok(Open { tree, token: token_of(tree.0), request_id, key: key.map(str::to_owned), ephemeral: false, settings })
    }

    /// `live=1`, `queued=2` of the tree, `a=running` or `a=completed` of a worker, `a-budget=3`.
    fn expect(&self, word: &str) -> Checked {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("not an expectation: {word}"))?;
        let tree = self.world.state().trees.get(&self.tree).ok_or("the tree is gone")?;
        let counts = tree.counts;
        let got = match key {
            "live" => counts.live.to_string(),
            "queued" => tree.queued().to_string(),
            "parked" => counts.parked.to_string(),
            "lent" => counts.lent.to_string(),
            "parking" => counts.parking.to_string(),
            "closed" => if tree.closed_at.is_some() { "yes" } else { "no" }.into(),
            "owed" => tree.outbox.items_to(u64::MAX).count().to_string(),
            "budget" => tree.ledger.remaining().to_string(),
            "next" => {
                tree.head().and_then(|head| self.world.state().workers.get(&head)).map_or("none".into(), |head| head.name.to_string())
            }
            name => match name.rsplit_once('-') {
                Some((name, "budget")) => self.worker(name)?.ledger.remaining().to_string(),
                Some((name, "epoch")) => self.worker(name)?.epoch.to_string(),
                Some((name, "owed")) => self.worker(name)?.outbox.items_to(u64::MAX).count().to_string(),
                Some(_) | None => state_of(self.worker(name)?),
            },
        };
        if got == value { Ok(()) } else { Err(format!("{key} is {got}")) }
    }

    fn answer(&mut self, name: &str) -> Checked<Answer> {
        let call = self.newest.get(name).copied().ok_or_else(|| format!("{name} has asked nothing"))?;
        self.world.answers.remove(&call).ok_or_else(|| format!("{name} has no answer"))
    }

    /// The names in the newest answer of this caller.
    fn told(&mut self, name: &str, expected: &[String]) -> Checked {
        let Answer::Reply(reply) = self.answer(name)? else { return Err(format!("{name} was refused")) };
        let ends = |ends: Vec<End>| ends.into_iter().map(|end| end.name).collect();
        let got: Vec<String> = match *reply {
            // Who had not ended when the time was over stands behind a minus.
            Reply::Ends { ends: told, pending, timed_out } if timed_out => {
                told.into_iter().map(|end| end.name).chain(pending.into_iter().map(|name| format!("-{name}"))).collect()
            }
            Reply::Ends { ends: told, .. } => ends(told),
            Reply::Welcome { caller: Caller::Worker { epoch, .. }, .. } => vec![format!("epoch-{epoch}")],
            Reply::Opened { tree, created, .. } => vec![if tree == self.tree { "same" } else { "other" }.into(), created.to_string()],
            Reply::StillActive { view, .. } => vec![format!("-{}", view.name)],
            Reply::Drained { stopped } => vec![stopped.to_string()],
            Reply::Receipt { tasks, ends: told, .. } if told.is_empty() => tasks.into_iter().map(|task| task.name).collect(),
            Reply::Receipt { ends: told, .. } => ends(told),
            Reply::Result(end) => vec![end.name],
            Reply::Stopped(names) => {
                names.into_iter().map(|(name, stopped)| if stopped { name } else { format!("{name}(settled)") }).collect()
            }
            Reply::Interrupted { stopped, .. } | Reply::Closed { stopped } => vec![stopped.to_string()],
            other
            @ (Reply::Welcome { .. } | Reply::Status { .. } | Reply::Counts(_) | Reply::Cap(_) | Reply::Paused(_) | Reply::Parked) => {
                return Err(format!("the answer is {other:?}"));
            }
        };
        if got == expected { Ok(()) } else { Err(format!("{name} was told {got:?}")) }
    }

    fn refused(&mut self, name: &str, expected: &str) -> Checked {
        match self.answer(name)? {
            Answer::Refused(rejection) => {
                let kind = format!("{:?}", rejection.kind()).to_lowercase();
                if kind == expected.replace('_', "") { Ok(()) } else { Err(format!("it was refused with {kind}: {rejection}")) }
            }
            Answer::Reply(reply) => Err(format!("it was answered: {reply:?}")),
        }
    }
}

/// A task from `name`, `name+3` for descendants, `name@` for a member of the group.
fn task(word: &str, timeout: Option<&str>) -> Task {
    let (name, allowance) = word.split_once('+').unwrap_or((word, "0"));
    let grouped = name.ends_with('@');
    let name = name.trim_end_matches('@');
    Task {
        name: Some(name.to_owned()),
        stem: "w".into(),
        token: token_of(name.len() as u64),
        allowance: Allowance::Exactly(allowance.parse().unwrap_or(u64::MAX)),
        group: grouped.then(|| "writers".into()),
        timeout_ms: timeout.and_then(|n| n.parse().ok()),
    }
}

fn state_of(worker: &Worker) -> String {
    if let Phase::Ended { outcome } = &worker.phase {
        return outcome.to_string().replace(' ', "-");
    }
    format!("{:?}", view::state_of(worker)).to_lowercase()
}

/// Plays whole programs to their end in random order: `name: op, op`; a name that no line has does nothing. Says how many workers
/// there were and how many steps it took.
pub fn whole(plans: &[(&str, &str)], cap: u32, budget: u64, seed: u64) -> Checked<(usize, u64)> {
    let mut fixed = BTreeMap::from([("*".to_owned(), Program::plain(Vec::new(), 0))]);
    for (name, ops) in plans {
        let (name, allowance) = name.split_once('+').unwrap_or((name, "0"));
        let ops: Vec<Op> = ops.split(',').map(op).collect::<Checked<_>>()?;
        fixed.insert(name.to_owned(), Program::plain(ops, allowance.parse().unwrap_or(0)));
    }
    let mut world = World::new(Plan { seed, tidy: true, fixed }, vec![Settings { cap, budget, ..settings() }], None)?;
    let mut rng = Rng::of(seed, "order");
    finish(&mut world, &mut rng)?;
    Ok((world.state().workers.len(), world.steps))
}

/// A tree that floods and one that launches a single worker, under a cap over both. Says how many slots were given back until that
/// worker had its own.
pub fn flood(cap_of_all: u32) -> Checked<u32> {
    let plan = Plan { seed: 1, tidy: true, fixed: BTreeMap::from([("*".into(), Program::plain(Vec::new(), 0))]) };
    let world = World::new(plan, vec![settings(), settings()], Some(cap_of_all))?;
    let mut table = Table { world, tree: TreeId(100), calls: 0, newest: BTreeMap::new(), requests: 0 };
    for tree in [100, 200] {
        let settings = Settings { budget: 1_000, ..settings() };
        let open = Open { tree: TreeId(tree), token: token_of(tree), request_id: tree.to_string(), key: None, ephemeral: false, settings };
        table.world.step(Command::Open { call: CallId(0), open: Box::new(open) })?;
    }
    let job = |from: u32| (from..from + 20).map(|n| format!(" f{n}")).collect::<String>();
    for from in (0..200).step_by(20) {
        table.line(&format!("root launch{}", job(from)))?;
        table.pump()?;
    }
    table.tree = TreeId(200);
    table.line("root launch one")?;
    table.pump()?;
    table.line("expect one=queued")?;
    for given_back in 1..=200 {
        table.line(&format!("f{} exits 0", given_back - 1))?;
        table.pump()?;
        table.tree = TreeId(100);
        table.line(&format!("root launch late{given_back}"))?;
        table.pump()?;
        if table.worker("one")?.slot {
            return Ok(given_back);
        }
    }
    Err("the flood starves the other tree".into())
}
