//! `roost events`: the numbered stream of a tree, from any number on.

use clap::Args;
use roost::EventReader;
use roost::proto::message::events::NumberedEvent;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::values;

/// Print what has happened in the tree, one line per event
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost events\n  roost events -f --from 120\n  roost events --names --json\n\n\
    Numbers start at 1 and have no gaps: who was cut off goes on with --from. With --json a line is one JSON object.")]
pub struct EventsArgs {
    /// Go on with what comes
    #[arg(short, long)]
    follow: bool,
    /// The first number
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// Only events that listeners of `subagents:` know, under the names that they have there
    #[arg(long)]
    names: bool,
}

impl EventsArgs {
    /// Reads, prints, follows.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let connection = setup.looking()?;
        if setup.tree.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let mut reader = EventReader::new(connection, setup.tree, self.from, self.follow);
        loop {
            // Who follows wants to see what is there before we wait for more.
            if !reader.has_read() {
                out.flush()?;
            }
            let Some(event) = reader.next_event()? else { return Ok(Exit::Ok) };
            self.print(&event, out)?;
        }
    }

    fn print(&self, event: &NumberedEvent, out: &mut Out) -> Result<(), Failure> {
        let name = event.event.subagents_name();
        if self.names && name.is_none() {
            return Ok(());
        }
        let mut fields = fields(event)?;
        if out.json {
            if let Some(name) = name.filter(|_| self.names) {
                fields.insert("subagents".into(), name.into());
            }
            return out.json(&fields);
        }
        out.line(&escape_line(&words(event, fields, name.filter(|_| self.names))))
    }
}

/// An event as one line of words, not escaped.
pub fn line(event: &NumberedEvent) -> Result<String, Failure> {
    Ok(words(event, fields(event)?, None))
}

fn words(event: &NumberedEvent, mut fields: Map<String, Value>, name: Option<&str>) -> String {
    let word = fields.remove("event").and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default();
    let mut line = format!("{} {} {}", event.number, values::clock_time(event.at_ms), name.unwrap_or(&word));
    for first in ["name", "execution"] {
        if let Some(Value::String(text)) = fields.remove(first) {
            line.push_str(&format!(" {text}"));
        }
    }
    for (field, value) in fields.iter().filter(|(field, _)| !matches!(field.as_str(), "number" | "at_ms" | "worker")) {
        line.push_str(&format!(" {field}={}", short(value)));
    }
    line
}

fn fields(event: &NumberedEvent) -> Result<Map<String, Value>, Failure> {
    let value = serde_json::to_value(event).map_err(std::io::Error::from)?;
    Ok(serde_json::from_value(value).map_err(std::io::Error::from)?)
}

/// A string without its quotes, an outcome by its status; the rest as JSON.
fn short(value: &Value) -> String {
    let word = |field| value.get(field).and_then(Value::as_str);
    match (value.as_str(), word("status"), word("kind")) {
        (Some(text), _, _) => text.to_owned(),
        (None, Some(status), Some(kind)) => format!("{status}/{kind}"),
        (None, Some(status), None) => status.to_owned(),
        (None, None, _) => value.to_string(),
    }
}
