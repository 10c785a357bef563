//! The rows that `roost watch` shows equal a fresh status: a snapshot at any moment and the events after it, over the journals of random
//! runs of the core.

use roost::proto::id::TreeId;
use roost::proto::message::events::NumberedEvent;
use roost::proto::message::status::{StatusReply, WorkerState};
use roost::rows::{Held, Rows};
use roost_core::event::Record;
use roost_core::state::State;
use roost_core::state::tree::Tree;
use roost_core::state::worker::{Phase, Worker};
use roost_core::{stream, view};
use roost_tests::sim::run::records;
use roostd::session::translate::{self, Outputs};

const SEEDS: u64 = 600;

fn status(state: &State, tree: &Tree) -> StatusReply {
    let workers = tree.workers.iter().filter_map(|id| state.workers.get(id));
    let shown = workers.map(|worker| translate::worker_status(view::worker(state, worker), Outputs::default()));
    StatusReply { trees: vec![translate::tree_status(view::tree(tree))], workers: shown.collect(), next: None }
}

/// The state that rows can know: when a park is recorded its process is as good as gone, and only the end of all children makes ready.
fn known(worker: &Worker) -> WorkerState {
    let parked = worker.has_parked() && worker.stop.is_none();
    match view::state_of(worker) {
        _ if parked && worker.active_children == 0 => WorkerState::WakeReady,
        _ if parked => WorkerState::Parked,
        // A process that went wrong before it said anything is started again: whether from a context is not told.
        WorkerState::Waking if matches!(&worker.phase, Phase::Starting(starting) if starting.again_at.is_some() || starting.tries > 0) => {
            WorkerState::Starting
        }
        state => state,
    }
}

fn compare(rows: &mut Rows, state: &State, tree: &Tree) -> Result<(), String> {
    let fresh = status(state, tree);
    let counts = rows.counts();
    let of = |what: &str, mine: u32, theirs: u32| if mine == theirs { Ok(()) } else { Err(format!("{what}: {mine}, and it is {theirs}")) };
    let progress = &fresh.trees[0].progress;
    of("queued", counts.queued, progress.queued)?;
    // Who is being stopped is shown as that.
    let stopping = tree.workers.iter().filter_map(|id| state.workers.get(id)).filter(|worker| worker.is_lent() && worker.stop.is_some());
    of("blocked", counts.blocked + u32::try_from(stopping.count()).unwrap(), progress.blocked)?;
    of("completed", counts.completed, progress.completed)?;
    of("failed", counts.failed, progress.failed)?;
    of("stopped", counts.stopped, progress.stopped)?;
    of("cap", rows.tree().progress.cap, progress.cap)?;
    let leaving = tree.workers.iter().filter_map(|id| state.workers.get(id)).filter(|worker| worker.has_parked() && worker.slot).count();
    // Who is being stopped between its slot and its process, or while its slot is lent or on its way
    // back, looks alike in a snapshot.
    let of_tree = || tree.workers.iter().filter_map(|id| state.workers.get(id));
    let unseen = |worker: &&Worker| worker.stop.is_some() && worker.slot && worker.process.is_none();
    let parked = |worker: &&Worker| worker.stop.is_some() && (worker.is_lent() || (worker.slot && worker.has_parked()));
    let count = |found: usize| u32::try_from(found).unwrap();
    let live = progress.live - count(leaving);
    let (least, most) = (live.saturating_sub(count(of_tree().filter(unseen).count())), live + count(of_tree().filter(parked).count()));
    if !(least..=most).contains(&counts.live) {
        let standing: Vec<_> = of_tree().map(|worker| format!("{} {:?} {}", worker.name, worker.phase, worker.slot)).collect();
        return Err(format!("live: {}, and it is {live}: {standing:?}", counts.live));
    }
    if (rows.tree().closed_at_ms, rows.tree().progress.paused) != (fresh.trees[0].closed_at_ms, progress.paused) {
        return Err("closed or paused".into());
    }
    let queue = tree.queue();
    let mut order: Vec<_> = rows.order().iter().map(|(id, _)| *id).collect();
    order.sort_unstable();
    if order != fresh.workers.iter().map(|worker| worker.worker).collect::<Vec<_>>() {
        return Err(format!("rows {order:?}"));
    }
    for worker in &fresh.workers {
        let (row, theirs) = (rows.get(worker.worker).ok_or("a row is missing")?, &state.workers[&worker.worker]);
        let state_of = match row.state() {
            WorkerState::Waking if matches!(&theirs.phase, Phase::Starting(starting) if starting.again_at.is_some() || starting.tries > 0) => {
                WorkerState::Starting
            }
            state => state,
        };
        let mine =
            (&row.name, row.lead, row.execution, row.active_children, &row.outcome, row.started_at_ms, row.ended_at_ms, row.accepted_at_ms);
        let right = (&worker.name, worker.lead, worker.execution, worker.active_children, &worker.outcome);
        let times = (worker.started_at_ms, worker.ended_at_ms, worker.accepted_at_ms);
        if (mine.0, mine.1, mine.2, mine.3, mine.4) != right || (mine.5, mine.6, mine.7) != times || state_of != known(theirs) {
            return Err(format!("{}: {state_of:?} {mine:?}, and it is {:?} {right:?} {times:?}", worker.name, known(theirs)));
        }
        let place = queue.iter().position(|id| *id == worker.worker).map(|index| index + 1);
        if rows.place(worker.worker) != place {
            return Err(format!("{}: place {:?}, and it is {place:?}", worker.name, rows.place(worker.worker)));
        }
        // Whose process leaves after a park has its slot still, and nothing tells.
        if leaving == 0 && worker.state == WorkerState::Queued {
            let words = match rows.held(row) {
                Held::Paused => "the tree is paused".into(),
                Held::Cap(cap) => format!("all {cap} slots are taken"),
                Held::Group(_, cap) => format!("all {cap} slots of its group are taken"),
                Held::Daemon => String::new(),
            };
            let right = worker.reason.clone().unwrap_or_default();
            let of_daemon = right == "it is about to start" || right == "the slots of the daemon are taken";
            if words != right && !(words.is_empty() && of_daemon) {
                return Err(format!("{} waits because {words:?}, and it is {right:?}", worker.name));
            }
        }
    }
    Ok(())
}

/// Replays a journal. Rows are made of a snapshot at one record in a few, and the events of a while before it come again.
fn follow(records: &[Record], step: usize) -> Result<usize, String> {
    let mut state = State::default();
    let mut events: Vec<(TreeId, NumberedEvent)> = Vec::new();
    let mut watched: Vec<(TreeId, usize, Rows)> = Vec::new();
    let mut compared = 0;
    for (index, record) in records.iter().enumerate() {
        state.apply(record).map_err(|error| error.to_string())?;
        let new = stream::numbered(&state, record);
        for (tree, event) in &new {
            for (_, _, rows) in watched.iter_mut().filter(|(of, _, _)| of == tree) {
                rows.take(event);
            }
        }
        events.extend(new);
        // Within a step nobody looks: a process is gone, and what that comes to is the next record.
        if state.workers.values().any(|worker| matches!(worker.phase, Phase::Gone { .. })) {
            continue;
        }
        for (tree, since, rows) in &mut watched {
            if let Some(tree) = state.trees.get(tree) {
                compare(rows, &state, tree).map_err(|why| format!("snapshot {since}, record {index} {:?}: {why}", record.event))?;
                compared += 1;
            }
        }
        if index % step == 0 {
            watched.retain(|(_, since, _)| since % (3 * step) == 0);
            for tree in state.trees.values() {
                let mut rows = Rows::new(status(&state, tree)).ok_or("a tree")?;
                let again: Vec<_> = events.iter().filter(|(of, _)| *of == tree.id).map(|(_, event)| event).collect();
                again[again.len().saturating_sub(step)..].iter().for_each(|event| rows.take(event));
                watched.push((tree.id, index, rows));
            }
        }
        if watched.len() > 12 {
            watched.remove(1);
        }
    }
    Ok(compared)
}

#[test]
fn rows_equal_a_fresh_status_after_random_events() {
    let mut compared = 0;
    let mut failed = Vec::new();
    for seed in 1..=SEEDS {
        for wide in [false, true] {
            let records = records(seed, wide).unwrap();
            match follow(&records, 7 + usize::try_from(seed % 30).unwrap()) {
                Ok(count) => compared += count,
                Err(why) => failed.push(format!("seed {seed} {wide}: {why}")),
            }
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(8)].join("\n"));
    assert!(compared > 100_000, "only {compared} were compared");
}
