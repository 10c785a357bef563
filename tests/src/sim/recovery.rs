//! One run cut at every commit: before it, so that what was recorded is lost, after it, so that its effects are, and inside of it, between
//! the steps that share it. Recovered and finished, every cut run comes to what the uncut one came to.
//!
//! A commit is one transaction, so that the journal has all of it or nothing; between two steps it could have ended, had the inbox
//! been empty for a moment. Between two records of one step it never ends.

use std::collections::BTreeMap;

use roost_proto::outcome::Outcome;

use super::Checked;
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
    /// What each root was told of.
    told: BTreeMap<String, Vec<String>>,
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
    Ok((result(&world), commits, world.seen))
}

fn result(world: &World) -> Result {
    // From the model: the state may have forgotten closed trees by now.
    let workers = world.model.workers.iter().filter_map(|(id, known)| {
        let (limit, reserved) = world.model.ledger(*id);
        Some((known.name.clone(), (known.outcome.clone()?, limit, reserved)))
    });
    let told = world.roots.iter().map(|root| {
        let mut names: Vec<String> = root.at.known.iter().filter_map(|execution| world.model.name_of(*execution)).collect();
        // How often a worker was resumed depends on the order of things.
        names.sort();
        names.dedup();
        (root.name.clone(), names)
    });
    Result { workers: workers.collect(), told: told.collect() }
}

fn difference(cut: &Result, uncut: &Result) -> String {
    let names = cut.workers.keys().chain(uncut.workers.keys());
    let differs = |name: &&String| cut.workers.get(*name) != uncut.workers.get(*name);
    match names.into_iter().find(differs) {
        Some(name) => format!("{name} came to {:?} and not to {:?}", cut.workers.get(name), uncut.workers.get(name)),
        None => format!("the roots were told {:?} and not {:?}", cut.told, uncut.told),
    }
}
