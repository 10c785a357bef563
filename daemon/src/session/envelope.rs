//! JSON-RPC 2.0 envelopes: a line as a call, an answer as a line.
//!
//! It knows no method and no connection.

use roost_proto::limits::LINE_BYTES_MAX;
use roost_proto::limits::PARSE_ERROR_CHARS_MAX;
use roost_proto::message::tree::Progress;
use roost_proto::rpc::{Answer, Call, ErrorKind, ErrorObject, Version};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};
use tracing::error;

/// A line that is no call.
#[derive(Debug)]
pub struct Unreadable {
    /// Its id, where that could be read.
    pub id: Option<u64>,
    /// What is wrong.
    pub error: ErrorObject,
}

/// Reads a line as a call.
///
/// # Errors
/// What is no JSON-RPC 2.0 call.
pub fn read_call(line: &[u8]) -> Result<Call, Unreadable> {
    let unreadable = |id, kind, message: String| Unreadable { id, error: ErrorObject::new(kind, message, None) };
    let text = std::str::from_utf8(line).map_err(|error| unreadable(None, ErrorKind::Parse, format!("the line is not UTF-8: {error}")))?;
    serde_json::from_str(text).map_err(|error| {
        // What does not fit may be in front of what is no JSON at all.
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(IgnoredAny) => {
                unreadable(id_of(text), ErrorKind::InvalidRequest, format!("the line is no JSON-RPC 2.0 call: {}", in_words(&error)))
            }
            Err(error) => unreadable(None, ErrorKind::Parse, format!("the line is not JSON: {}", in_words(&error))),
        }
    })
}

/// What JSON did not fit, and where. A text that was found in the wrong place is repeated only by its start, and without anything that
/// a terminal or a log would obey.
pub fn in_words(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let mut words = String::new();
    for c in whole.chars().take(PARSE_ERROR_CHARS_MAX) {
        let turns_text = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns_text { words.extend(c.escape_unicode()) } else { words.push(c) }
    }
    if whole.chars().nth(PARSE_ERROR_CHARS_MAX).is_some() {
        words.push_str(&format!("... at line {} column {}", error.line(), error.column()));
    }
    words
}

/// The id of a call that cannot be read otherwise.
fn id_of(text: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Identified<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    serde_json::from_str::<Identified<'_>>(text).ok()?.id.get().parse().ok()
}

/// A reply as a line. One that is too long becomes a refusal.
pub fn answer_line(id: u64, result: Box<RawValue>) -> Vec<u8> {
    let line = line_of(&Answer { result: Some(result), ..envelope(Some(id)) });
    if line.len() <= LINE_BYTES_MAX {
        return line;
    }
    error!(bytes = line.len(), "an answer is longer than a line may be");
    let message = format!("the answer has {} bytes, and a line may have {LINE_BYTES_MAX}", line.len());
    error_line(Some(id), ErrorObject::new(ErrorKind::Limit, message, Some("ask for fewer workers at a time".into())))
}

/// A refusal as a line.
pub fn error_line(id: Option<u64>, error: ErrorObject) -> Vec<u8> {
    line_of(&Answer { error: Some(error), ..envelope(id) })
}

/// A `progress` notification as a line.
pub fn progress_line(progress: &Progress) -> Vec<u8> {
    let params = to_raw_value(progress).ok();
    line_of(&Answer { method: Some("progress".into()), params, ..envelope(None) })
}

/// Any other notification as a line.
pub fn notice_line(method: &str, params: Box<RawValue>) -> Vec<u8> {
    line_of(&Answer { method: Some(method.into()), params: Some(params), ..envelope(None) })
}

fn line_of(answer: &Answer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_else(|error| {
        // Numbers, texts and raw values always can be written; if that ever changes, a peer gets a line that it can read.
        error!(%error, "an answer could not be written");
        br#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"an answer could not be written","data":{"kind":"internal"}}}"#.to_vec()
    });
    line.push(b'\n');
    line
}

fn envelope(id: Option<u64>) -> Answer {
    Answer { jsonrpc: Version::V2, id, method: None, params: None, result: None, error: None }
}
