//! A transcript as text: lines of JSON, each with one thing that happens.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// A transcript.
#[derive(Debug)]
pub struct Transcript {
    /// Its file.
    pub path: PathBuf,
    /// Its lines.
    pub steps: Vec<Step>,
}

/// One line.
#[derive(Debug)]
pub struct Step {
    /// Its number in the file, from 1.
    pub number: usize,
    /// As it stands there.
    pub text: String,
    /// On which connection.
    pub on: String,
    /// What happens.
    pub kind: StepKind,
}

/// What happens in a line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// What the transcript, or the rest of it, shows.
    About(String),
    /// The client sends this object as a line.
    Send(Value),
    /// The client sends this text as it is.
    SendRaw(String),
    /// The client sends these bytes.
    SendBytes(Vec<u8>),
    /// The client sends a text over and over.
    SendLong {
        /// The text.
        text: String,
        /// How often.
        times: usize,
    },
    /// The daemon sends this, and maybe more fields.
    Expect(Value),
    /// The daemon closes the connection.
    Closed(True),
    /// The client closes the connection.
    HangUp(True),
    /// The worker of this name has a process, with this in its environment.
    Begins(Value),
    /// The worker writes to its standard output.
    Prints(String),
    /// The worker's process exits.
    Exits(u8),
    /// The worker's process is ended by somebody else.
    Ends(True),
}

/// The word `true`: what just happens has nothing more to say.
#[derive(Debug, Deserialize)]
#[serde(try_from = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;
    fn try_from(value: bool) -> Result<Self, &'static str> {
        if value { Ok(Self) } else { Err("only `true` is possible here") }
    }
}

impl Transcript {
    /// Reads one.
    ///
    /// # Errors
    /// Names file and line of what is no step.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        // LF alone ends a line: `str::lines` would do, but a CR belongs to the line.
        let lines = text.split('\n').enumerate().filter(|(_, line)| !line.is_empty());
        let steps = lines
            .map(|(at, line)| Step::read(at + 1, line).map_err(|problem| format!("{}:{}: {problem}", path.display(), at + 1)))
            .collect::<Result<Vec<Step>, String>>()?;
        if !matches!(steps.first().map(|step| &step.kind), Some(StepKind::About(_))) {
            return Err(format!("{}: the first line must say what it is about", path.display()));
        }
        Ok(Self { path: path.to_owned(), steps })
    }
}

impl Step {
    fn read(number: usize, text: &str) -> Result<Self, String> {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let on = match fields.remove("on") {
            None => "client".to_owned(),
            Some(Value::String(name)) => name,
            Some(other) => return Err(format!("`on` must be a name, not {other}")),
        };
        let kind = serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
        Ok(Self { number, text: text.to_owned(), on, kind })
    }
}
