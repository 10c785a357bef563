//! One run cut at every commit: before it, so that what was recorded is lost, and after it, so that its effects are. Recovered and
//! finished, every cut run comes to what the uncut one came to.

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

/// How much was cut.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuts {
    /// Runs that were cut and recovered.
    pub runs: usize,
    /// Workers in the uncut run.
    pub workers: usize,
}

/// Records the run of a seed, then cuts it at every commit.
pub fn cut_everywhere(seed: u64) -> Checked<Cuts> {
    let (uncut, commits) = play(seed, None)?;
    let mut cuts = Cuts { runs: 0, workers: uncut.workers.len() };
    for commit in 0..commits {
        for durable in [false, true] {
            let (cut, _) =
                play(seed, Some((commit, durable))).map_err(|why| format!("cut at commit {commit}, durable {durable}: {why}"))?;
            if cut != uncut {
                return Err(format!("cut at commit {commit}, durable {durable}: {}", difference(&cut, &uncut)));
            }
            cuts.runs += 1;
        }
    }
    Ok(cuts)
}

/// Plays a seed, commit by commit; at the cut the broker dies, after or before what it was to write is on disk.
fn play(seed: u64, cut: Option<(u64, bool)>) -> Checked<(Result, u64)> {
    let mut world = world_of(seed, true)?;
    let mut rng = Rng::of(seed, "order");
    let mut commits = 0;
    for _ in 0..ACTIONS {
        if world.is_over() {
            break;
        }
        if world.is_ahead() {
            match cut {
                Some((at, durable)) if at == commits => {
                    if durable {
                        world.commit_and_forget()?;
                    }
                    world.perform(Action::CrashBroker { answers_arrive: false })?;
                }
                Some(_) | None => world.perform(Action::Commit)?,
            }
            commits += 1;
            continue;
        }
        let Some(action) = super::run::choose(&world, &mut rng, 0) else { break };
        world.perform(action)?;
    }
    finish(&mut world, &mut rng)?;
    Ok((result(&world), commits))
}

fn result(world: &World) -> Result {
    // From the model: the state may have forgotten closed trees by now.
    let workers = world.model.workers.iter().filter_map(|(id, known)| {
        let (limit, reserved) = world.model.ledger(*id);
        Some((known.name.clone(), (known.outcome.clone()?, limit, reserved)))
    });
    let told = world.roots.iter().map(|root| {
        let known = root.at.known.iter().filter_map(|id| world.model.workers.get(id));
        let mut names: Vec<String> = known.map(|worker| worker.name.clone()).collect();
        names.sort();
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
