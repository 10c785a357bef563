//! Who may control whom, for every caller and every worker of random trees: to all but a worker's lead its name is as good as one that
//! nobody ever had, and trying it leaves no trace.

use std::collections::BTreeSet;

use roost_core::broker::Broker;
use roost_core::command::{CallId, Caller, Command, Speak, Target};
use roost_core::effect::Effect;
use roost_core::event::{Digest, Owner};
use roost_core::state::State;
use roost_core::state::worker::Worker;
use roost_proto::id::{TreeId, WorkerId};

use super::Checked;
use super::rng::Rng;
use super::run::{finish, wild, world_of};
use super::world::World;

/// A name that no worker of these worlds has.
const NOBODY: &str = "nobody";

/// A call that no client of these worlds makes.
const CALL: CallId = CallId(u64::MAX);

/// Actions between two looks.
const EACH: u64 = 80;

/// How many pairs were tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pairs {
    /// Pairs of a caller and a worker that is not its child.
    pub all: usize,
    /// Those in which the caller is alive and may call.
    pub living: usize,
    /// Those in which the worker is below the caller, or the caller itself.
    pub below: usize,
}

/// Somebody who may call.
struct Asker {
    caller: Caller,
    tree: TreeId,
    owner: Owner,
    lease: Option<u64>,
    living: bool,
}

/// Plays a seed, and tries all pairs again and again, and at its end.
pub fn foreign_control(seed: u64) -> Checked<Pairs> {
    let mut world = world_of(seed, false, false)?;
    let mut rng = Rng::of(seed, "order");
    let mut pairs = Pairs::default();
    wild(&mut world, &mut rng, |world, action| if action % EACH == EACH - 1 { all_pairs(world, &mut pairs) } else { Ok(()) })?;
    all_pairs(&world, &mut pairs)?;
    finish(&mut world, &mut rng)?;
    all_pairs(&world, &mut pairs)?;
    Ok(pairs)
}

fn all_pairs(world: &World, pairs: &mut Pairs) -> Checked {
    let mut broker = world.broker.clone();
    // Everything due is done first, so that what is recorded after it comes of the tries.
    broker.step(world.moment(), Command::Tick).map_err(|error| format!("the broker stops: {error}"))?;
    let workers: Vec<Worker> = broker.state().workers.values().cloned().collect();
    for asker in askers(broker.state()) {
        let refusals: Vec<String> =
            tries(&asker, NOBODY).into_iter().map(|command| refusal(world, &mut broker, command)).collect::<Checked<_>>()?;
        for worker in workers.iter().filter(|worker| (worker.tree, worker.owner) != (asker.tree, asker.owner)) {
            let is_below = worker.tree == asker.tree && line_of(broker.state(), worker.id).contains(&asker.owner);
            pairs.all += 1;
            pairs.living += usize::from(asker.living);
            pairs.below += usize::from(is_below);
            for (command, expected) in tries(&asker, &worker.name).into_iter().zip(&refusals) {
                // Itself, and what is further down, it may read, and no more than that.
                if is_below && matches!(command, Command::Result { wait: false, .. }) {
                    leaves_no_record(world, &mut broker, command)?;
                    continue;
                }
                let told = format!("{command:?}");
                let refused = refusal(world, &mut broker, command)?.replace(&format!("{:?}", worker.name), &format!("{NOBODY:?}"));
                if refused != *expected {
                    return Err(format!("{:?} is told {refused}, and of nobody {expected} (I12): {told}", asker.caller));
                }
            }
        }
    }
    Ok(())
}

/// The roots of all trees, and all workers.
fn askers(state: &State) -> Vec<Asker> {
    let roots = state.trees.values().map(|tree| Asker {
        caller: Caller::Root(tree.id),
        tree: tree.id,
        owner: Owner::Root,
        lease: Some(tree.lease),
        living: tree.closed_at.is_none(),
    });
    let workers = state.workers.values().map(|worker| Asker {
        caller: Caller::Worker { worker: worker.id, epoch: worker.epoch },
        tree: worker.tree,
        owner: Owner::Worker(worker.id),
        lease: worker.speech.as_ref().map(|speech| speech.lease),
        living: worker.can_speak(),
    });
    roots.chain(workers).collect()
}

/// A worker and all leads above it.
fn line_of(state: &State, worker: WorkerId) -> BTreeSet<Owner> {
    let owner = |of: &Owner| if let Owner::Worker(worker) = of { state.workers.get(worker).map(|worker| worker.owner) } else { None };
    std::iter::successors(Some(Owner::Worker(worker)), owner).collect()
}

/// All that only a lead may do to a worker.
fn tries(asker: &Asker, name: &str) -> Vec<Command> {
    let (call, caller) = (CALL, asker.caller);
    let name = || name.to_owned();
    let result = |wait| Command::Result {
        call,
        caller,
        tree: None,
        of: Target::Name(name()),
        wait,
        request_id: Some("foreign result".into()),
        timeout_ms: None,
    };
    let speak = Speak::Message { request_id: "foreign words".into(), digest: Digest(11), name: name(), allowance: None };
    vec![
        Command::Stop { call, caller, request_id: None, names: vec![name()], no_wait: true },
        Command::Speak { call, caller, lease: asker.lease, speak: Box::new(speak) },
        Command::Wait {
            call,
            caller,
            request_id: "foreign wait".into(),
            names: vec![name()],
            any: false,
            tell_later: false,
            timeout_ms: None,
        },
        result(false),
        result(true),
    ]
}

/// What a command is refused with. It changes nothing.
fn refusal(world: &World, broker: &mut Broker, command: Command) -> Checked<String> {
    let told = format!("{command:?}");
    let effects = leaves_no_record(world, broker, command)?;
    match effects.as_slice() {
        [Effect::Refuse { call: CALL, rejection }] => Ok(format!("{rejection:?}")),
        others => Err(format!("a lead that is none is not refused, and no more than that: {told}: {others:?} (I12)")),
    }
}

fn leaves_no_record(world: &World, broker: &mut Broker, command: Command) -> Checked<Vec<Effect>> {
    let told = format!("{command:?}");
    let outcome = broker.step(world.moment(), command).map_err(|error| format!("the broker stops: {error}"))?;
    if outcome.records.is_empty() { Ok(outcome.effects) } else { Err(format!("{told} of no lead records {:?} (I12)", outcome.records)) }
}
