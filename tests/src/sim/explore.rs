//! All runs of a small case over the real core: every order of what clients, workers and the supervisor do, with a broker crash,
//! a supervisor crash or a worker's death at any point. States are compared by their hash.
//!
//! What nobody can observe is not told apart: commits, orders to the supervisor and answers on their way arrive at once.

use std::collections::BTreeMap;

use roost_core::event::Settings;

use super::mail::{Got, Mail};
use super::plan::{Op, Plan, Program};
use super::run::standing;
use super::script::{Ask, Who};
use super::world::{Action, World};
use super::{Checked, table};

/// What may go wrong, how often, in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// The broker crashes.
    pub broker: u8,
    /// The supervisor crashes.
    pub supervisor: u8,
    /// A worker dies.
    pub deaths: u8,
    /// A waiting client gives up.
    pub abandons: u8,
    /// A worker that is asked to park declines, or does not answer.
    pub refusals: u8,
    /// The broker crashes when what it recorded is on disk and nobody has heard of it.
    pub unheard: u8,
    /// A client loses its connection.
    pub cuts: u8,
    /// The daemon is told to leave.
    pub drains: u8,
    /// In every state, every impostor tries.
    pub impostors: bool,
}

/// A small case.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is.
    pub name: &'static str,
    /// The cap.
    pub cap: u32,
    /// Whether blocked waits lend their slots.
    pub lend: bool,
    /// The plans, one line each: `name: op, op, ...`, as in `tests/scenarios`; `r0` is the root.
    pub plans: &'static str,
    /// What may go wrong.
    pub faults: Faults,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Ways from one to the next.
    pub transitions: usize,
    /// States in which everything was over.
    pub ends: usize,
}

struct Search {
    known: BTreeMap<u64, usize>,
    /// For each state, from where it was reached.
    from: Vec<Vec<usize>>,
    /// For each state, the action by which it was first reached.
    by: Vec<Option<(usize, Action)>>,
    ends: Vec<usize>,
    transitions: usize,
    states_max: usize,
}

/// Explores a case. An error names the property and the way to it.
pub fn explore(case: &Case, states_max: usize) -> Checked<Explored> {
    let mut world = world_of(case)?;
    settle(&mut world)?;
    let mut search = Search { known: BTreeMap::new(), from: Vec::new(), by: Vec::new(), ends: Vec::new(), transitions: 0, states_max };
    let (first, _) = search.index(&world, case.faults, None);
    let mut open = vec![(first, world, case.faults)];
    while let Some((at, world, faults)) = open.pop() {
        if world.is_over() {
            search.ends.push(at);
            continue;
        }
        let moves = moves(&world, faults);
        if moves.is_empty() {
            return Err(format!("{}: nothing can happen: {}\n{}", case.name, standing(&world), search.way(at)));
        }
        if faults.impostors {
            impostors(&world).map_err(|why| format!("{}: {why}\n{}", case.name, search.way(at)))?;
        }
        for (action, unheard, left) in moves {
            let mut next = world.clone();
            let done = next.perform(action).and_then(|()| if unheard { next.perform(Action::CrashAfterCommit) } else { Ok(()) });
            done.and_then(|()| settle(&mut next)).map_err(|why| {
                let then = if unheard { ", and a crash before anybody hears of it" } else { "" };
                format!("{}: {why}\n{}  {action:?}{then}", case.name, search.way(at))
            })?;
            search.transitions += 1;
            let (index, new) = search.index(&next, left, Some((at, action)));
            search.from[index].push(at);
            if new {
                open.push((index, next, left));
            }
            if search.from.len() > search.states_max {
                return Err(format!("{}: more than {} states", case.name, search.states_max));
            }
        }
    }
    search.all_can_end(case)?;
    Ok(Explored { states: search.from.len(), transitions: search.transitions, ends: search.ends.len() })
}

fn world_of(case: &Case) -> Checked<World> {
    let mut fixed = BTreeMap::new();
    for line in case.plans.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, ops) = line.split_once(':').ok_or_else(|| format!("a plan without a name: {line}"))?;
        let ops: Vec<Op> = ops.split(',').map(table::op).collect::<Checked<_>>()?;
        let below = case.plans.lines().filter(|other| other.trim_start().starts_with(&format!("{}.", name.trim()))).count();
        fixed.insert(name.trim().to_owned(), Program::plain(ops, below as u64));
    }
    let plan = Plan { seed: 1, tidy: true, wide: false, fixed };
    let settings = Settings { cap: case.cap, lend_slots: case.lend, ..table::settings() };
    let mut world = World::new(plan, vec![settings], None)?;
    world.calls_by_caller = true;
    Ok(world)
}

/// What nobody else can observe happens at once.
fn settle(world: &mut World) -> Checked {
    loop {
        let actions = world.actions();
        let inner = |action: &&Action| match action {
            Action::Commit | Action::Order => true,
            Action::Report => world.supervisor.next_is_start(),
            Action::Act(who, _) => world.script(*who).is_some_and(|script| {
                let small = script.mail.front().is_some_and(|mail| match mail {
                    Mail::Answer(_) => true,
                    // Its task, and what is not owed any more.
                    Mail::Items { items, .. } => items.iter().all(|(_, got)| *got == Got::Task),
                    Mail::Withdrawn(_) | Mail::AskPark | Mail::LeaseLost => false,
                });
                !world.is_ending(*who) && (script.life != world.life || small)
            }),
            Action::Hangup
            | Action::Deadline
            | Action::Pass(_)
            | Action::CrashBroker { .. }
            | Action::CrashAfterCommit
            | Action::CrashSupervisor
            | Action::Die(_)
            | Action::Emptied(_)
            | Action::Abandon(_)
            | Action::Impostor(..)
            | Action::Window(_)
            | Action::Ghost(..)
            | Action::Cut(_)
            | Action::Desert(_)
            | Action::ComeBack(_)
            | Action::Drain(_)
            | Action::Resume(_) => false,
        };
        let Some(action) = actions.iter().find(inner).copied() else { return Ok(()) };
        world.perform(action)?;
    }
}

/// Whoever claims to be somebody else gets nowhere, and changes nothing.
fn impostors(world: &World) -> Checked {
    for of in world.living() {
        for kind in 0..super::impostor::KINDS {
            world.clone().perform(Action::Impostor(of, kind))?;
        }
    }
    Ok(())
}

/// What may happen next, whether its effects are lost, and what may still go wrong after it.
fn moves(world: &World, faults: Faults) -> Vec<(Action, bool, Faults)> {
    let plain = heard(world, faults);
    let lost =
        plain.iter().filter(|_| faults.unheard > 0).map(|(action, left)| (*action, true, Faults { unheard: left.unheard - 1, ..*left }));
    plain.iter().map(|(action, left)| (*action, false, *left)).chain(lost).collect()
}

fn heard(world: &World, faults: Faults) -> Vec<(Action, Faults)> {
    let mut moves = Vec::new();
    for action in world.actions() {
        if !matches!(action, Action::Act(_, 1..)) {
            moves.push((action, faults));
        } else if faults.refusals > 0 {
            moves.push((action, Faults { refusals: faults.refusals - 1, ..faults }));
        }
    }
    if moves.is_empty() {
        let paused = world.state().open_trees().find(|tree| tree.paused).map(|tree| Action::Resume(tree.id));
        moves.extend(paused.or(world.broker.next_deadline().map(|_| Action::Deadline)).map(|action| (action, faults)));
    }
    if faults.cuts > 0 {
        let procs = world.procs().filter(|(_, proc)| proc.main).map(|(of, _)| Who::Proc(of));
        let left = Faults { cuts: faults.cuts - 1, ..faults };
        moves.extend((0..world.roots.len()).map(Who::Root).chain(procs).map(|who| (Action::Cut(who), left)));
    }
    if faults.drains > 0 {
        moves.push((Action::Drain(1_000), Faults { drains: faults.drains - 1, ..faults }));
    }
    if faults.broker > 0 {
        moves.push((Action::CrashBroker { answers_arrive: false }, Faults { broker: faults.broker - 1, ..faults }));
    }
    if faults.supervisor > 0 {
        moves.push((Action::CrashSupervisor, Faults { supervisor: faults.supervisor - 1, ..faults }));
    }
    if faults.deaths > 0 {
        moves.extend(world.living().into_iter().map(|of| (Action::Die(of), Faults { deaths: faults.deaths - 1, ..faults })));
    }
    if faults.abandons > 0 {
        let waits = |who: &Who| {
            let call = world.script(*who).and_then(|script| script.call.as_ref());
            call.is_some_and(|call| matches!(call.ask, Ask::Wait { .. }) && !world.answers.contains_key(&call.id))
        };
        let waiting = world.procs().map(|(incarnation, _)| Who::Proc(incarnation)).filter(waits);
        moves.extend(waiting.map(|who| (Action::Abandon(who), Faults { abandons: faults.abandons - 1, ..faults })));
    }
    moves
}

impl Search {
    /// The number of a state, and whether it is new.
    fn index(&mut self, world: &World, faults: Faults, by: Option<(usize, Action)>) -> (usize, bool) {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (world.digest(), faults).hash(&mut hasher);
        let next = self.from.len();
        let index = *self.known.entry(hasher.finish()).or_insert(next);
        if index == next {
            self.from.push(Vec::new());
            self.by.push(by);
        }
        (index, index == next)
    }

    /// The actions that first led to a state.
    fn way(&self, to: usize) -> String {
        let steps = std::iter::successors(Some(to), |at| self.by[*at].map(|(from, _)| from));
        let mut way: Vec<String> = steps.filter_map(|at| self.by[at].map(|(_, action)| format!("  {action:?}\n"))).collect();
        way.reverse();
        way.concat()
    }

    /// From every state some way leads to an end.
    fn all_can_end(&self, case: &Case) -> Checked {
        let mut can = vec![false; self.from.len()];
        let mut open = self.ends.clone();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut can[at], true) {
                open.extend(&self.from[at]);
            }
        }
        match can.iter().position(|can| !can) {
            Some(stuck) => Err(format!("{}: no way leads to an end from here:\n{}", case.name, self.way(stuck))),
            None => Ok(()),
        }
    }
}
