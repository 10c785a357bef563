//! `roost logs --transcript`: what went into an execution and came out of it, from its file of JSON lines.
//!
//! It prints any record that has a time and a kind; what the kinds mean is their writer's business.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::output::{Out, escape, escape_line, note};
use crate::values;

/// A text that is longer stands on lines of its own.
const INLINE_MAX: usize = 60;

/// Prints the file; byte by byte when `raw`.
pub(super) fn print(path: &Path, raw: bool, out: &mut Out) -> Result<(), Failure> {
    let what = || path.display().to_string();
    let mut file = BufReader::new(File::open(path).map_err(|source| Failure::Input { what: what(), source })?);
    if raw {
        out.copy(&mut file, &what())?;
        return out.flush();
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        // LF alone ends a record.
        let read = file.read_until(b'\n', &mut line).map_err(|source| Failure::Input { what: what(), source })?;
        if read == 0 {
            return out.flush();
        }
        match serde_json::from_slice(&line) {
            Ok(record) => lines(&record).iter().try_for_each(|line| out.line(line))?,
            Err(_) if line.last() != Some(&b'\n') => {
                out.flush()?;
                note("roost: the last record is not whole: it is being written, or its writer was ended");
            }
            Err(_) => out.line(&format!("(a record of {read} bytes that cannot be read)"))?,
        }
    }
}

/// A record as lines, harmless for a terminal.
pub fn lines(record: &Map<String, Value>) -> Vec<String> {
    let kind = record.get("kind").and_then(Value::as_str).unwrap_or("record");
    let mut head = match record.get("at_ms").and_then(Value::as_u64) {
        Some(at) => format!("{} {kind}", values::clock_time(at)),
        None => kind.to_owned(),
    };
    let mut texts = Vec::new();
    for (field, value) in record {
        match value {
            _ if matches!(field.as_str(), "at_ms" | "kind") => {}
            Value::String(text) if field == "text" || text.len() > INLINE_MAX || text.contains('\n') => texts.push((field, text)),
            Value::String(text) => head.push_str(&format!(" {field}={text}")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                head.push_str(&format!(" {field}={value}"));
            }
        }
    }
    let mut lines = vec![escape_line(&head)];
    for (field, text) in texts {
        if field != "text" {
            lines.push(format!("  {}:", escape_line(field)));
        }
        lines.extend(escape(text).lines().map(|line| format!("  {line}")));
    }
    lines
}
