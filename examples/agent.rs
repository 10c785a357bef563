//! An agent in sixty lines: counts words, with a child for each line of its task. It launches, parks, is woken, and finishes.
//!
//!     cargo build --examples && roost run --cap 1 --runner worker --task $'one two\nthree' -- target/debug/examples/agent
//!
//! The model of a real agent would stand where words are counted. `examples/agent.py` is the same without the library.

use roost::proto::message::deliver::ItemKind;
use roost::proto::message::launch::{Runner, Task};
use roost::proto::message::worker::{Next, SavedContext};
use roost::{Seen, Turn, Worker, WorkerEvent};
use serde::{Deserialize, Serialize};

/// What the next process goes on from.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    words: usize,
    open_children: usize,
    failed: Vec<String>,
    seen: Seen,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut worker = Worker::connect()?;
    let mut saved: Saved = worker.context()?.map_or_else(|| Ok(Saved::default()), |text| serde_json::from_slice(&text))?;
    worker.remember(std::mem::take(&mut saved.seen));
    while let Some(event) = worker.next(None)? {
        match event {
            // All that this process knows was saved when its last turn ended.
            WorkerEvent::Park(_) if worker.park_ready(None)? => break,
            WorkerEvent::Closing => break,
            WorkerEvent::Park(_) => {}
            WorkerEvent::Items(items) => {
                if items.items.is_empty() {
                    // Woken without a word: whoever is still open was stopped.
                    saved.open_children = 0;
                }
                for item in worker.accept(items.items)? {
                    take_in(&mut worker, &mut saved, item.what)?;
                }
                if turn_ends(&mut worker, &mut saved)? == Next::Exit {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn take_in(worker: &mut Worker, saved: &mut Saved, what: ItemKind) -> Result<(), Box<dyn std::error::Error>> {
    match what {
        ItemKind::Task { text } if text.lines().count() > 1 => {
            let own = std::env::current_exe()?;
            let child = |line: &str| Task { runner: Runner::Worker, task: line.into(), ..roost::task([&own]) };
            saved.open_children = worker.launch(text.lines().map(child).collect())?.tasks.len();
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
    Ok(())
}

fn turn_ends(worker: &mut Worker, saved: &mut Saved) -> Result<Next, Box<dyn std::error::Error>> {
    saved.seen = worker.seen().clone();
    let text = if saved.failed.is_empty() { saved.words.to_string() } else { format!("failed: {}", saved.failed.join(", ")) };
    let answer = (saved.open_children == 0).then_some(text);
    let context = Some(SavedContext::Bytes(serde_json::to_string(saved)?.as_str().into()));
    Ok(worker.settle(&Turn { answer, context, ..Turn::default() })?)
}
