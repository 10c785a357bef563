//! One run cut at every commit: before it, so that what was recorded is lost, after it, so that its effects are, and inside of it, between
//! the steps that share it. Recovered and finished, every cut run comes to what the uncut one came to.
//!
//! A commit is one transaction, so that the journal has all of it or nothing; between two steps it could have ended, had the inbox
//! been empty for a moment. Between two records of one step it never ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use roost_core::event::Owner;
use roost_proto::id::{ExecutionId, TreeId};
use roost_proto::outcome::Outcome;
use roost_proto::usage::Usage;

use super::Checked;
use super::model::Model;
use super::rng::Rng;
use super::run::{finish, world_of};
use super::world::{Action, World};

/// Most actions of a recorded run.
const ACTIONS: u64 = 4_000;

/// What a run came to, by names: ids depend on the order of things.
#[derive(Debug, PartialEq, Eq)]
struct Result {
    /// How each worker ended, its budget, and what it reserved of it.
    workers: BTreeMap<String, (Outcome, u64, u64)>,
    /// What each execution has used, and each root, as execution 0 of its own. How often a worker was resumed depends on the order of
    /// things, and a resumed one uses nothing, so that those are left out.
    used: BTreeMap<(String, usize), Usage>,
    /// The children whose ends each lead was told: of every execution once, oldest first.
    told: BTreeMap<String, BTreeSet<String>>,
}

/// What a run came to, how many steps each of its commits had, and what happened how often.
type Played = (Result, Vec<usize>, BTreeMap<&'static str, u64>);

/// How much was cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuts {
    /// Runs that were cut and recovered.
    pub runs: usize,
    /// Those of them that were cut between two steps of one commit.
    pub inside: usize,
    /// Workers in the uncut run.
    pub workers: usize,
    /// Messages in it.
    pub words: u64,
    /// How many of them resumed somebody.
    pub resumes: u64,
}

/// Records the run of a seed in commits of at most so many steps, then cuts it at every commit.
pub fn cut_everywhere(seed: u64, steps_max: usize) -> Checked<Cuts> {
    let (uncut, commits, seen) = play(seed, steps_max, None)?;
    let said = |what: &[&str]| what.iter().filter_map(|what| seen.get(what)).sum();
    let words = said(&["messages steer", "messages come after an end", "messages resume", "leads are told"]);
    let mut cuts = Cuts { workers: uncut.workers.len(), words, resumes: said(&["resumes"]), ..Cuts::default() };
    for (commit, steps) in commits.into_iter().enumerate() {
        for durable in 0..=steps {
            let at = |why: String| format!("cut at commit {commit}, {durable} of {steps} steps durable: {why}");
            let (cut, ..) = play(seed, steps_max, Some((commit, durable))).map_err(at)?;
            if cut != uncut {
                return Err(at(difference(&cut, &uncut)));
            }
            cuts.runs += 1;
            cuts.inside += usize::from(durable > 0 && durable < steps);
        }
    }
    Ok(cuts)
}

/// Plays a seed, commit by commit; at the cut the broker dies, when so many steps of what it was to write are on disk. Says how many
/// steps each commit had.
fn play(seed: u64, steps_max: usize, cut: Option<(usize, usize)>) -> Checked<Played> {
    let mut world = world_of(seed, true, false)?;
    let mut rng = Rng::of(seed, "order");
    let mut commits = Vec::new();
    for _ in 0..ACTIONS {
        if world.is_over() {
            break;
        }
        let steps = world.journal.steps();
        let action = if world.is_ahead() && steps >= steps_max { Some(Action::Commit) } else { super::run::choose(&world, &mut rng, 0) };
        let Some(action) = action else { break };
        if action != Action::Commit {
            world.perform(action)?;
            continue;
        }
        match cut {
            Some((at, durable)) if at == commits.len() => {
                if durable == steps {
                    world.commit_and_forget()?;
                } else {
                    world.commit_steps_and_forget(durable)?;
                }
                world.perform(Action::CrashBroker { answers_arrive: false })?;
            }
            Some(_) | None => world.perform(Action::Commit)?,
        }
        commits.push(steps);
    }
    finish(&mut world, &mut rng)?;
    Ok((result(&world)?, commits, world.seen))
}

fn result(world: &World) -> Checked<Result> {
    // From the model: the state may have forgotten closed trees by now.
    let model = &world.model;
    let mut result = Result { workers: BTreeMap::new(), used: BTreeMap::new(), told: BTreeMap::new() };
    for (id, known) in &model.workers {
        let Some(outcome) = known.outcome.clone() else { continue };
        let (limit, reserved) = model.ledger(*id);
        result.workers.insert(known.name.clone(), (outcome, limit, reserved));
        let used = model.executions(*id).into_iter().map(|execution| model.usage_of(execution)).enumerate();
        result.used.extend(used.map(|(run, used)| ((known.name.clone(), run), used)));
        let told = told(model, known.tree, Owner::Worker(*id)).map_err(|why| format!("{}: {why}", known.name))?;
        result.told.insert(known.name.clone(), told);
    }
    for root in &world.roots {
        let Some(tree) = root.tree else { continue };
        result.used.insert((root.name.clone(), 0), model.usage_of_root(tree));
        let told = told(model, tree, Owner::Root).map_err(|why| format!("{}: {why}", root.name))?;
        result.told.insert(root.name.clone(), told);
        let taken: BTreeSet<ExecutionId> = model.taken_by(tree, Owner::Root).into_iter().collect();
        if taken != root.at.known {
            return Err(format!("{} knows {:?}, and was told {taken:?}", root.name, root.at.known));
        }
    }
    result.used.retain(|_, used| *used != Usage::default());
    Ok(result)
}

/// The children of whose ends a lead was told: of each, those of all its executions, once and in their order. Between children the order
/// is that of their ends, which is a matter of timing.
fn told(model: &Model, tree: TreeId, owner: Owner) -> Checked<BTreeSet<String>> {
    let taken = model.taken_by(tree, owner);
    let mut names = BTreeSet::new();
    for child in model.children_of(owner, Some(tree)) {
        let runs = model.executions(child);
        let told: Vec<ExecutionId> = taken.iter().copied().filter(|execution| runs.contains(execution)).collect();
        let name = model.workers.get(&child).map(|known| known.name.clone()).unwrap_or_default();
        if told != runs {
            return Err(format!("{name} has had the executions {runs:?}, and the ends told of it are {told:?}"));
        }
        names.insert(name);
    }
    Ok(names)
}

fn difference(cut: &Result, uncut: &Result) -> String {
    fn of<K: Ord + Debug, V: PartialEq + Debug>(what: &str, cut: &BTreeMap<K, V>, uncut: &BTreeMap<K, V>) -> Option<String> {
        let mut names = cut.keys().chain(uncut.keys());
        let name = names.find(|name| cut.get(*name) != uncut.get(*name))?;
        Some(format!("{name:?} {what} {:?} and not {:?}", cut.get(name), uncut.get(name)))
    }
    let workers = of("came to", &cut.workers, &uncut.workers);
    let used = || of("used", &cut.used, &uncut.used);
    workers.or_else(used).or_else(|| of("was told of", &cut.told, &uncut.told)).unwrap_or_default()
}
