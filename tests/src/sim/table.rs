//! Scenarios written as text.

mod told;
mod words;

use std::collections::BTreeMap;

use roost_core::command::{Activity, CallId, Caller, Command, Launch, Open, Speak, Target};
use roost_core::event::{Context, Digest, Place, Settings};
use roost_core::state::outbox::Item;
use roost_core::state::worker::{Phase, Worker};
use roost_proto::id::{Epoch, TreeId};
use roost_proto::link::ExitStatus;

use super::Checked;
use super::plan::{Op, Plan, Program};
use super::rng::Rng;
use super::run::{finish, standing};
use super::script::{Progress, token_of};
use super::world::{Action, World};
use words::{set, settle, task};

pub(crate) use words::op;
pub use words::settings;

const CONTEXT: Context = Context { digest: Digest(7), bytes: 1, place: Place::Journal };

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
    let plan = Plan { seed: 1, tidy: true, wide: false, fixed: BTreeMap::from([("*".into(), Program::plain(Vec::new(), 0))]) };
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

impl Table {
    fn pump(&mut self) -> Checked {
        loop {
            let inner = |action: &&Action| matches!(action, Action::Commit | Action::Order | Action::Report);
            if let Some(action) = self.world.actions().iter().find(inner).copied() {
                self.world.perform(action)?;
            } else if !self.greet()? {
                return Ok(());
            }
        }
    }

    /// Whoever speaks says hello as soon as it runs, unless its name says that it is mute, and takes its task in. Whether there was one.
    fn greet(&mut self) -> Checked<bool> {
        let new = |worker: &&Worker| {
            worker.phase == Phase::Running
                && worker.speech.as_ref().is_some_and(|speech| !speech.greeted)
                && !worker.name.starts_with("mute")
        };
        let Some(worker) = self.world.state().workers.values().find(new) else { return Ok(false) };
        let (name, id) = (worker.name.to_string(), worker.id);
        self.call(&[&name, "hello"])?;
        let worker = self.world.state().workers.get(&id).ok_or("it is gone")?;
        let first = worker.outbox.items_to(u64::MAX).next();
        let task = first.filter(|(_, item)| **item == Item::Task).map(|(seq, _)| seq.to_string());
        if let Some(seq) = task {
            self.call(&[&name, "acks", &seq, "as=task"])?;
        }
        Ok(true)
    }

    /// The newest lease of a lead.
    fn lease(&self, name: &str) -> Option<u64> {
        let lease = match self.worker(name) {
            Ok(worker) => worker.speech.as_ref()?.lease,
            Err(_) => self.world.state().trees.get(&self.tree)?.lease,
        };
        Some(lease).filter(|lease| *lease > 0)
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
        match words[1] {
            "exits" => self.world.end_process(incarnation?, ExitStatus::Code(i32::try_from(number(2)).unwrap_or(1)), false),
            "dies" => self.world.end_process(incarnation?, ExitStatus::Signal(i32::try_from(number(2)).unwrap_or(9)), false),
            "leaves" => self.world.end_process(incarnation?, ExitStatus::Code(0), true),
            "emptied" => self.world.perform(Action::Emptied(incarnation?))?,
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
        let context = CONTEXT;
        // An older or later process, or an older connection, says it.
        let epoch = option("epoch").and_then(|epoch| epoch.parse().ok());
        let speaker = match (caller, epoch) {
            (Caller::Worker { worker, .. }, Some(epoch)) => Caller::Worker { worker, epoch: Epoch(epoch) },
            (caller, _) => caller,
        };
        let lease = option("lease").map_or_else(|| self.lease(words[0]), |lease| lease.parse().ok());
        let speak = |speak| Command::Speak { call, caller: speaker, lease, speak: Box::new(speak) };
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
                    unusable: None,
                };
                Command::Launch { call, caller, launch: Box::new(launch) }
            }
            "waits" => Command::Wait {
                call,
                caller,
                request_id,
                names: owned,
                any: false,
                tell_later: false,
                timeout_ms: option("timeout").and_then(|n| n.parse().ok()),
            },
            "waits-any" => Command::Wait { call, caller, request_id, names: owned, any: true, tell_later: false, timeout_ms: None },
            "hello" => Command::Hello { call, claim: Some(self.claim(words[0], option("token"), option("epoch"))?) },
            "drains" => Command::Drain { call: Some(call), now: false, timeout_ms: option("timeout").and_then(|n| n.parse().ok()) },
            "opens" => Command::Open { call, open: Box::new(self.open(TreeId(200 + self.calls), request_id, option("key"))?) },
            "is-there" => Command::RootPresence { tree: self.tree, connections: number.unwrap_or(0) },
            "reads" => {
                let of = Target::Name(names.concat());
                Command::Result { call, caller, tree: None, of, wait: false, request_id: None, timeout_ms: None }
            }
            "settles" => speak(Speak::Settle { settle: settle(request_id, &names) }),
            "message" => {
                let allowance = option("allowance").and_then(|n| n.parse().ok());
                speak(Speak::Message { request_id, digest: Digest(names.concat().len() as u128), name: names.concat(), allowance })
            }
            "works" => {
                let activity = Some(if names == ["tool"] { Activity::Tool } else { Activity::Busy });
                speak(Speak::Report { activity, usage: None, says: false })
            }
            "tells" => speak(Speak::TellLead { request_id, digest: Digest(1) }),
            "ready" => speak(Speak::ParkReady { context: Some(context) }),
            "declines" => speak(Speak::ParkDecline { not_before_ms: names.concat().parse().unwrap_or(0) }),
            "acks" => speak(Speak::Ack { request_id: None, items: names.iter().filter_map(|word| word.parse().ok()).collect() }),
            "stop" => Command::Stop { call, caller, request_id: Some(request_id), names: owned, no_wait: false },
            "interrupt" => Command::Interrupt { call, caller, request_id: None, no_wait: false },
            "cap" => Command::Cap { call, caller, cap: number },
            "pause" => Command::Pause { call, caller, paused: true },
            "resume" => Command::Pause { call, caller, paused: false },
            "close" => Command::Close { call, caller, now: false },
            "parks" => Command::Park { call, caller, context },
            other => return Err(format!("nobody knows how to {other}")),
        };
        self.world.contexts.insert(7, Progress::default());
        self.world.step(command)
    }
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
    let mut world = World::new(Plan { seed, tidy: true, wide: false, fixed }, vec![Settings { cap, budget, ..settings() }], None)?;
    let mut rng = Rng::of(seed, "order");
    finish(&mut world, &mut rng)?;
    Ok((world.state().workers.len(), world.steps))
}

/// A tree that floods and one that launches a single worker, under a cap over both. Says how many slots were given back until that
/// worker had its own.
pub fn flood(cap_of_all: u32) -> Checked<u32> {
    let plan = Plan { seed: 1, tidy: true, wide: false, fixed: BTreeMap::from([("*".into(), Program::plain(Vec::new(), 0))]) };
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
