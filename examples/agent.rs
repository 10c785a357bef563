//! An agent in sixty lines: counts words, with a child for each line of its task. It launches, parks, is woken, and finishes. A model
//! would stand where words are counted. `examples/agent.py` is the same without the library.
//!
//!     cargo build --examples && roost run --cap 1 --runner worker --task $'one two\nthree' -- target/debug/examples/agent

use roost::proto::message::{deliver::ItemKind, worker::Next};
use roost::{Items, Worker, WorkerEvent};
use serde::{Deserialize, Serialize};

/// What the next process goes on from.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    words: usize,
    open_children: usize,
    failed: Vec<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut worker = Worker::connect()?;
    let mut saved: Saved = worker.restore()?;
    let mut over = false;
    while !over {
        over = match worker.next(None)? {
            Some(WorkerEvent::Items(items)) => turn(&mut worker, &mut saved, items)? == Next::Exit,
            // All that this process knows was saved when its last turn ended.
            Some(WorkerEvent::Park(_)) => worker.park_ready(None)?,
            Some(WorkerEvent::Closing) | None => true,
        };
    }
    Ok(())
}

/// Takes in what has come, and ends the turn: with an answer when no child is open any more.
fn turn(worker: &mut Worker, saved: &mut Saved, items: Items) -> Result<Next, Box<dyn std::error::Error>> {
    if items.items.is_empty() {
        // Woken without a word: whoever is still open was stopped.
        saved.open_children = 0;
    }
    for item in worker.accept(items.items)? {
        match item.what {
            ItemKind::Task { text } if text.lines().count() > 1 => {
                let own = std::env::current_exe()?;
                let children = text.lines().map(|line| roost::worker_task([&own], line)).collect();
                saved.open_children = worker.launch(children)?.tasks.len();
            }
            ItemKind::Task { text } => saved.words = text.split_whitespace().count(),
            ItemKind::Completion { result } => {
                saved.open_children = saved.open_children.saturating_sub(1);
                match result.answer.parse::<usize>() {
                    Ok(words) if result.end.outcome.is_success() => saved.words += words,
                    _ => saved.failed.push(result.end.name),
                }
            }
            ItemKind::LeadMessage { .. } | ItemKind::ChildMessage { .. } | ItemKind::Notice { .. } | ItemKind::Undelivered { .. } => {}
        }
    }
    let text = if saved.failed.is_empty() { saved.words.to_string() } else { format!("failed: {}", saved.failed.join(", ")) };
    let answer = (saved.open_children == 0).then_some(text);
    Ok(worker.settle_with(answer, saved)?)
}
