//! One random run of a seed: a wild part with faults, then a calm one in which everything has to end.

use std::collections::BTreeMap;

use roost_core::event::{Delivery, Join, Record, Settings, Timing};

use super::plan::Plan;
use super::rng::Rng;
use super::script::{Ask, Who};
use super::world::{Action, World};
use super::{Checked, check};

/// Most actions of the wild part, and of the calm one.
const WILD: u64 = 400;
const CALM: u64 = 12_000;

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Steps of the broker.
    pub steps: u64,
    /// Workers that ended.
    pub workers: u64,
    /// What happened how often.
    pub seen: BTreeMap<&'static str, u64>,
}

/// What holds for a tree of this seed.
pub(crate) fn settings_of(rng: &mut Rng) -> Settings {
    Settings {
        interrupt_scope: roost_core::event::InterruptScope::All,
        cap: 1 + u32::try_from(rng.below(4)).unwrap_or(0),
        budget: 4 + rng.below(56),
        lend_slots: rng.chance(700),
        end_leftovers: rng.chance(700),
        adopt_orphans: rng.chance(300),
        stop_grace_ms: [0, 50, 5_000][rng.index(3)],
        depth_max: 2 + u32::try_from(rng.below(4)).unwrap_or(0),
        group_caps: if rng.chance(350) { vec![("writers".into(), 1 + u32::try_from(rng.below(2)).unwrap_or(0))] } else { Vec::new() },
        delivery: [Delivery::Steer, Delivery::Steer, Delivery::FollowUp, Delivery::NextTurn, Delivery::Passive][rng.index(5)],
        join: if rng.chance(350) { Join::Group } else { Join::Async },
        timing: Timing {
            // Whoever lingers leaves only when it is killed, so never 0.
            settle_to_exit_ms: [1, 300, 5_000][rng.index(3)],
            leftovers_grace_ms: [0, 1_000][rng.index(2)],
            start_retries: [0, 1, 2, 2][rng.index(4)],
            start_retry_ms: [0, 20, 1_000][rng.index(3)],
            early_wake_dwell_ms: [0, 250, 250, 2_000][rng.index(4)],
            wake_bypass: [1, 2, 32][rng.index(3)],
            // Some never answer: never 0 either.
            park_deadline_ms: [1, 50, 10_000][rng.index(3)],
            park_again_ms: [0, 5_000][rng.index(2)],
            startup_ms: [1_000, 120_000][rng.index(2)],
            idle_ms: [0, 0, 1_500, 60_000][rng.index(4)],
            hold_ms: 200,
            join_window_ms: 100,
            join_hold_ms: 3_000,
            join_straggler_ms: 1_500,
        },
    }
}

/// The world of a seed.
pub(crate) fn world_of(seed: u64, tidy: bool, wide: bool) -> Checked<World> {
    let mut rng = Rng::of(seed, "world");
    let plan = Plan { seed, tidy, wide, fixed: BTreeMap::new() };
    let trees = if rng.chance(250) { 2 } else { 1 };
    let mut settings: Vec<Settings> = (0..trees).map(|_| settings_of(&mut rng)).collect();
    // Watchdogs bite by time, which passes otherwise after a cut.
    for settings in settings.iter_mut().filter(|_| tidy) {
        (settings.timing.startup_ms, settings.timing.idle_ms) = (0, 0);
    }
    let cap_of_all = rng.chance(250).then(|| 1 + u32::try_from(rng.below(3)).unwrap_or(0));
    let mut world = World::new(plan, settings, cap_of_all)?;
    for index in 0..trees {
        world.presences[index].ephemeral = !tidy && rng.chance(500);
    }
    Ok(world)
}

/// Runs a seed, as it was of old or with all that there is to do. An error says what did not hold.
pub fn run(seed: u64, wide: bool, trace: bool) -> Checked<Report> {
    let mut world = world_of(seed, false, wide)?;
    world.trace = trace;
    let mut rng = Rng::of(seed, "order");
    wild(&mut world, &mut rng, |_, _| Ok(()))?;
    finish(&mut world, &mut rng)?;
    let workers = world.state().workers.len() as u64;
    Ok(Report { steps: world.steps, workers, seen: world.seen })
}

/// All that becomes durable in the wild part of a seed's run.
pub fn records(seed: u64, wide: bool) -> Checked<Vec<Record>> {
    let mut world = world_of(seed, false, wide)?;
    let mut rng = Rng::of(seed, "order");
    wild(&mut world, &mut rng, |_, _| Ok(()))?;
    Ok(world.journal.durable().to_vec())
}

/// The wild part of a run; after each action, which are counted, somebody may look.
pub(crate) fn wild(world: &mut World, rng: &mut Rng, mut look: impl FnMut(&World, u64) -> Checked) -> Checked {
    let eager = 300 + rng.below(650);
    let faults = if rng.chance(700) { rng.below(40) } else { 0 };
    for count in 0..WILD {
        if world.is_over() {
            break;
        }
        let action = fault(world, rng, faults).or_else(|| choose(world, rng, eager));
        let Some(action) = action else { break };
        world.perform(action)?;
        look(world, count)?;
    }
    Ok(())
}

/// No faults any more: everything has to end (liveness).
pub(crate) fn finish(world: &mut World, rng: &mut Rng) -> Checked {
    for _ in 0..CALM {
        if world.is_over() {
            for index in 0..world.roots.len() {
                check::knows_all(world, Who::Root(index))?;
            }
            world.model.words_are_settled()?;
            world.all_leave()?;
            while world.is_ahead() {
                world.perform(Action::Commit)?;
            }
            return world.journal.replay();
        }
        match choose(world, rng, 900) {
            Some(action) => world.perform(action)?,
            None => return Err(format!("nothing can happen any more, and not everything has ended: {}", standing(world))),
        }
    }
    Err(format!("everything goes on and nothing ends: {}", standing(world)))
}

/// One of the things that may happen; time passes mostly when nothing else is left.
pub(crate) fn choose(world: &World, rng: &mut Rng, eager: u64) -> Option<Action> {
    if world.is_ahead() && rng.chance(eager) {
        return Some(Action::Commit);
    }
    let actions = world.actions();
    let deadline = world.broker.next_deadline();
    if actions.is_empty() {
        let paused = world.state().open_trees().find(|tree| tree.paused).map(|tree| Action::Resume(tree.id));
        let ripe = world.next_ripe().filter(|ripe| deadline.is_none_or(|at| *ripe <= at.0)).map(|ripe| Action::Pass(ripe - world.now));
        return paused.or(ripe).or(deadline.map(|_| Action::Deadline));
    }
    if rng.chance(40) {
        return Some(match deadline {
            Some(_) if rng.chance(300) => Action::Deadline,
            Some(_) | None => Action::Pass(rng.below(400)),
        });
    }
    Some(actions[rng.index(actions.len())])
}

fn fault(world: &World, rng: &mut Rng, per_mille: u64) -> Option<Action> {
    if !rng.chance(per_mille) {
        return None;
    }
    let living: Vec<_> = world.living().into_iter().collect();
    // A commit whose effects are lost, and orders to the supervisor that are, say most about recovery.
    if world.is_ahead() && rng.chance(300) {
        return Some(Action::CrashAfterCommit);
    }
    if !world.supervisor.orders.is_empty() && rng.chance(300) {
        return Some(Action::CrashSupervisor);
    }
    match rng.below(20) {
        0..4 => Some(Action::CrashBroker { answers_arrive: rng.chance(500) }),
        4 => Some(Action::CrashSupervisor),
        13 | 15 | 16 => {
            let index = rng.index(world.roots.len());
            let may = world.presences[index].ephemeral && !world.presences[index].deserted && world.roots[index].tree.is_some();
            may.then_some(Action::Desert(index))
        }
        14 => Some(Action::Drain(rng.below(3_000))),
        7 | 8 if world.plan.wide => Some(Action::Window(rng.index(world.roots.len()))),
        17 => Some(Action::Window(rng.index(world.roots.len()))),
        18 | 19 => {
            let procs = world.procs().filter(|(_, proc)| proc.main).map(|(of, _)| Who::Proc(of));
            let all: Vec<Who> = (0..world.roots.len()).map(Who::Root).chain(procs).collect();
            Some(Action::Cut(all[rng.index(all.len())]))
        }
        10..13 if !living.is_empty() => {
            let kind = u8::try_from(rng.below(u64::from(super::impostor::KINDS))).unwrap_or(0);
            Some(Action::Impostor(living[rng.index(living.len())], kind))
        }
        5..7 if !living.is_empty() => Some(Action::Die(living[rng.index(living.len())])),
        _ => {
            let waits = |who: &Who| {
                let call = world.script(*who).and_then(|script| script.call.as_ref());
                call.is_some_and(|call| {
                    matches!(call.ask, Ask::Wait { .. } | Ask::Read { wait: true, .. }) && !world.answers.contains_key(&call.id)
                })
            };
            let procs = world.procs().map(|(incarnation, _)| Who::Proc(incarnation));
            let waiting: Vec<Who> = procs.filter(waits).collect();
            (!waiting.is_empty()).then(|| Action::Abandon(waiting[rng.index(waiting.len())]))
        }
    }
}

/// How everybody stands, for a failure.
pub(crate) fn standing(world: &World) -> String {
    let workers = world.state().workers.values().filter(|worker| !worker.has_ended());
    let workers: Vec<String> = workers
        .map(|worker| format!("{} {:?} slot {} active {}", worker.name, worker.phase, worker.slot, worker.active_children))
        .collect();
    let procs = world.procs().map(|(incarnation, proc)| (incarnation, &proc.script));
    let scripts: Vec<String> = world
        .roots
        .iter()
        .map(|root| format!("{} at {:?} in {:?}", root.name, root.op(), root.call))
        .chain(procs.map(|(incarnation, script)| format!("{incarnation} at {:?} {:?} in {:?}", script.op(), script.mode, script.call)))
        .collect();
    format!("\n  {}\n  {}", workers.join("\n  "), scripts.join("\n  "))
}
