//! The two ways out: data on standard output (text or JSON), everything else on standard error. Knows no command.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Read, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Standard output.
pub struct Out {
    to: BufWriter<StdoutLock<'static>>,
    /// Whether data is wanted as JSON.
    pub json: bool,
}

impl Out {
    /// Standard output of this process.
    pub fn new(json: bool) -> Self {
        Self { to: BufWriter::new(io::stdout().lock()), json }
    }

    /// One line of text.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.to, "{text}")?)
    }

    /// One JSON document on one line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(io::Error::from)?;
        self.line(&text)
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.to.write_all(bytes)?)
    }

    /// All bytes of a reader as they are.
    pub fn copy(&mut self, from: &mut impl Read, what: &str) -> Result<(), Failure> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => self.bytes(&buffer[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Failure::Input { what: what.into(), source }),
            }
        }
    }

    /// Everything written so far leaves now.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }

    /// Whether a person looks at it.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Whether colour is welcome: a terminal, and `NO_COLOR` unset or empty.
    pub fn colour(&self) -> bool {
        self.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}

/// Whether the terminal says of itself that it can only take one line after the other.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// One line on standard error. When even that cannot be written there is nobody left to tell.
pub fn note(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}

/// A failure, where its reader looks for it.
pub fn report(failure: &Failure, out: &mut Out) {
    if failure.exit().code() == 0 {
        return;
    }
    let message = escape_line(&format!("{failure:#}"));
    let (kind, hint) = (failure.kind(), failure.hint().map(|hint| escape_line(&hint)));
    if out.json {
        let error = serde_json::json!({"error": {"kind": kind, "message": failure.to_string(), "hint": failure.hint()}});
        if out.json(&error).and_then(|()| out.flush()).is_ok() {
            return;
        }
    }
    note(&format!("roost: {message} ({kind})"));
    if let Some(hint) = hint {
        note(&format!("hint: {hint}"));
    }
}

/// A text of somebody else, safe for a terminal: control characters become visible, newline and tab stay.
pub fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        if c == '\n' || c == '\t' || !is_control(c) {
            safe.push(c)
        } else {
            push_escaped(&mut safe, c)
        }
        safe
    })
}

/// The same for a text that must stay on its line.
pub fn escape_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        if is_control(c) {
            push_escaped(&mut safe, c)
        } else {
            safe.push(c)
        }
        safe
    })
}

/// C0, DEL, C1, and the marks that turn the direction of a line around.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_escaped(safe: &mut String, c: char) {
    let code = u32::from(c);
    let written = if code < 0x100 { write!(safe, "\\x{code:02x}") } else { write!(safe, "\\u{{{code:x}}}") };
    // Writing to a String cannot fail.
    if written.is_err() {
        safe.push('?');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_reaches_a_terminal() {
        let evil = "a\x1b]0;x\x07\r\u{9b}31m\u{202e}b\n\tc\u{7f}é";
        assert_eq!(escape(evil), "a\\x1b]0;x\\x07\\x0d\\x9b31m\\u{202e}b\n\tc\\x7fé");
        assert!(!escape_line(evil).contains(['\n', '\t']));
    }
}
