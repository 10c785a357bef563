//! Conformance transcripts (`tests/data/protocol/*.jsonl`) against a real daemon: what is sent is sent, what is expected must come.
//!
//! `docs/protocol.md` says how a transcript is read, for replayers in other languages. This one knows no method of the protocol.

mod matching;
mod script;
mod worker;

pub use matching::Names;
pub use script::{Step, StepKind, Transcript};

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::PATIENCE;
use super::home::Home;
use super::wire::Wire;
use worker::{Stage, Worker};

/// Replays a transcript over a daemon of its own.
///
/// # Panics
/// Where the daemon does something else, with the line of the transcript.
pub fn replay(transcript: &Transcript) {
    let home = Home::new();
    home.start_daemon(&[]);
    let mut run = Replay { stage: Stage::new(&home), names: Names::default(), ends: BTreeMap::new(), home: &home };
    run.names.set("dir", json!(home.dir()));
    run.names.set("state_dir", json!(home.state_dir()));
    run.names.set("bridge", json!(run.stage.program()));
    run.names.set("control", json!(run.stage.socket()));
    run.names.set("path", json!(std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())));
    for step in &transcript.steps {
        if let Err(problem) = run.step(step) {
            panic!("{}:{}: {problem}\n  {}", transcript.path.display(), step.number, step.text);
        }
    }
}

struct Replay<'h> {
    home: &'h Home,
    stage: Stage,
    names: Names,
    ends: BTreeMap<String, End>,
}

/// Our end of something that a transcript names by `on`.
struct End {
    line: Line,
    /// Notifications that nobody has expected so far.
    kept: VecDeque<Value>,
}

enum Line {
    /// A connection of the replayer's own.
    Direct(Wire),
    /// One of a worker's process.
    Through(Worker),
}

impl Replay<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let on = step.on.as_str();
        match &step.kind {
            StepKind::About(_) => Ok(()),
            StepKind::Send(call) => {
                let call = self.names.fill(call)?;
                self.say(on, format!("{call}\n").as_bytes())
            }
            StepKind::SendRaw(text) => self.say(on, text.as_bytes()),
            StepKind::SendBytes(bytes) => self.say(on, bytes),
            StepKind::SendLong { text, times } => self.say(on, text.repeat(*times).as_bytes()),
            StepKind::Expect(wanted) => {
                let names = self.names.clone();
                self.names = self.end(on)?.expect(&names, wanted)?;
                Ok(())
            }
            StepKind::Closed(_) => match self.end(on)?.next(PATIENCE) {
                Some(line) => Err(format!("the daemon should close the connection, and says {line}")),
                None if self.end(on)?.is_closed() => Ok(()),
                None => Err("the daemon does not close the connection".into()),
            },
            StepKind::HangUp(_) => self.ends.remove(on).map(drop).ok_or_else(|| format!("there is no connection `{on}`")),
            StepKind::Begins(environment) => {
                let (worker, found) = self.stage.worker(on)?;
                self.names.matches(environment, &found)?;
                self.ends.insert(on.to_owned(), End { line: Line::Through(worker), kept: VecDeque::new() });
                Ok(())
            }
            StepKind::Prints(text) => self.worker(on)?.order(&json!({"print": text})),
            StepKind::Exits(code) => self.worker(on)?.order(&json!({"exit": code})),
            StepKind::Ends(_) => self.worker(on)?.await_end(),
        }
    }

    fn say(&mut self, on: &str, bytes: &[u8]) -> Result<(), String> {
        match &mut self.end(on)?.line {
            // The daemon may close before all of a line that is too long is written: what it says of it is expected next.
            Line::Direct(wire) => wire.bytes(bytes).or_else(|error| if bytes.len() > 1 << 20 { Ok(()) } else { Err(error.to_string()) }),
            Line::Through(worker) => {
                let text = std::str::from_utf8(bytes).map_err(|_| "a worker says whole lines of text")?;
                worker.say(text.strip_suffix('\n').ok_or("a worker says whole lines")?)
            }
        }
    }

    /// The connection of this name; made when it is named for the first time.
    fn end(&mut self, on: &str) -> Result<&mut End, String> {
        let socket = self.home.socket();
        Ok(self.ends.entry(on.to_owned()).or_insert_with(|| End { line: Line::Direct(Wire::connect(&socket)), kept: VecDeque::new() }))
    }

    fn worker(&mut self, on: &str) -> Result<&mut Worker, String> {
        match self.ends.get_mut(on).map(|end| &mut end.line) {
            Some(Line::Through(worker)) => Ok(worker),
            Some(Line::Direct(_)) | None => Err(format!("`{on}` is no worker that has begun")),
        }
    }
}

impl End {
    /// Takes the next line that fits; returns the names with what they stand for then. A notification that does not fit may be
    /// expected later; an answer that does not fit is wrong.
    fn expect(&mut self, names: &Names, wanted: &Value) -> Result<Names, String> {
        let fits = |found: &Value| {
            let mut names = names.clone();
            names.matches(wanted, found).map(|()| names)
        };
        if let Some((at, names)) = self.kept.iter().enumerate().find_map(|(at, found)| Some((at, fits(found).ok()?))) {
            self.kept.remove(at);
            return Ok(names);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(found) = self.next(until.saturating_duration_since(Instant::now())) else {
                let state = if self.is_closed() { "the connection was closed" } else { "nothing more came" };
                return Err(format!("{state}; passed over: {:?}", self.kept));
            };
            match fits(&found) {
                Ok(names) => return Ok(names),
                Err(_) if found["method"].is_string() => self.kept.push_back(found),
                Err(problem) => return Err(format!("{problem}\n  the daemon says {found}")),
            }
        }
    }

    fn next(&mut self, within: Duration) -> Option<Value> {
        match &mut self.line {
            Line::Direct(wire) => wire.answer(within),
            Line::Through(worker) => worker.heard(within),
        }
    }

    fn is_closed(&mut self) -> bool {
        match &mut self.line {
            Line::Direct(wire) => wire.is_closed_within(Duration::from_secs(1)),
            Line::Through(worker) => worker.is_closed(),
        }
    }
}
