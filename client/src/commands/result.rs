//! `roost result`: what a worker answered.

use std::io::Read;

use clap::Args;
use roost::proto::message::result::{ReadResult, ResultReply, WorkerResult};
use roost::proto::message::status::WorkerState;
use roost::proto::rpc::ErrorKind;

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape, escape_line, note};
use crate::setup::Setup;
use crate::values;

/// Print what a worker answered
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  roost result build\n  roost result build --wait --timeout 5m\n  roost result build --raw > answer.bin\n  \
    roost result x12"
)]
pub struct ResultArgs {
    /// Whose; or the id of an execution (x12), also an earlier one of a worker that was resumed
    #[arg(value_name = "NAME", add = candidates::workers())]
    name: String,
    /// Block until it has ended
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this long, with exit code 124
    #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true, requires = "wait")]
    timeout: Option<u64>,
    /// Byte by byte; without it control characters are made visible
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

impl ResultArgs {
    /// Reads and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        // Only a lead may wait; looking at a tree needs no attaching, and works on a closed one too.
        let (mut connection, tree) = if self.wait { (setup.in_tree()?, None) } else { (setup.looking()?, setup.tree) };
        if tree.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let request = ReadResult { name: self.name.clone(), wait: self.wait, timeout_ms: self.timeout, tree, ..ReadResult::default() };
        let reply = match (connection.result(&request), self.name.parse()) {
            // No worker has that name: it is an execution.
            (Err(error), Ok(execution)) if error.refusal() == Some(ErrorKind::UnknownWorker) => {
                connection.result(&ReadResult { name: String::new(), execution: Some(execution), ..request })?
            }
            (reply, _) => reply?,
        };
        match reply {
            ResultReply::Ended(result) => self.ended(&result, out),
            ResultReply::Active { name, state, timed_out } => active(name, state, timed_out, out),
        }
    }

    fn ended(&self, result: &WorkerResult, out: &mut Out) -> Result<Exit, Failure> {
        if out.json {
            out.json(result)?;
        } else {
            let mut answer = roost::open_answer(result)?;
            if self.raw {
                out.copy(&mut answer, "the answer")?;
            } else {
                let mut bytes = Vec::new();
                answer.read_to_end(&mut bytes).map_err(|source| Failure::Input { what: "the answer".into(), source })?;
                let text = escape(&String::from_utf8_lossy(&bytes));
                out.bytes(text.as_bytes())?;
                if !text.is_empty() && !text.ends_with('\n') {
                    out.line("")?;
                }
            }
            out.flush()?;
        }
        note_leftovers(result);
        if result.end.outcome.is_success() {
            return Ok(Exit::Ok);
        }
        note(&format!("roost: {} {}", escape_line(&result.end.name), escape_line(&result.end.outcome.to_string())));
        Ok(Exit::NotCompleted)
    }
}

/// What the worker left behind goes on without it; nobody else ends it.
pub fn note_leftovers(result: &WorkerResult) {
    if !result.leftovers.is_empty() {
        note(&format!("roost: {} left processes behind: {}", escape_line(&result.end.name), values::pids(&result.leftovers)));
    }
}

fn active(name: String, state: WorkerState, timed_out: bool, out: &mut Out) -> Result<Exit, Failure> {
    note(&format!("roost: {} has not ended: {}", escape_line(&name), values::wire_word(&state)));
    if !timed_out {
        note("hint: --wait waits for its end");
    }
    if out.json {
        out.json(&ResultReply::Active { name, state, timed_out })?;
    }
    Ok(if timed_out { Exit::TimedOut } else { Exit::NotCompleted })
}
