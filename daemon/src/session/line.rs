//! One line of a peer: from its bytes to a call, and from the call to what the driver is asked.
//!
//! No socket, no waiting: the same two functions serve connections, the fuzz targets and the replay of their corpora.

use roost_core::command::{CallId, Caller};
use roost_proto::message::Request;
use roost_proto::message::session::Hello;
use roost_proto::rpc::{Call, ErrorKind, ErrorObject};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{FromSession, translate};

/// A line that is no call.
#[derive(Debug)]
pub struct Unreadable {
    /// The call's id, as far as it could be read.
    pub id: Option<u64>,
    /// What is wrong.
    pub error: ErrorObject,
}

/// Reads a line.
///
/// # Errors
/// What is no JSON-RPC 2.0 call.
pub fn read(line: &[u8]) -> Result<Call, Unreadable> {
    let unreadable = |id, kind, message: String| Unreadable { id, error: ErrorObject::new(kind, message, None) };
    let text = std::str::from_utf8(line).map_err(|error| unreadable(None, ErrorKind::Parse, format!("the line is not UTF-8: {error}")))?;
    serde_json::from_str(text).map_err(|error| {
        // What does not fit may be in front of what is no JSON at all.
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(IgnoredAny) => {
                let message = format!("the line is no JSON-RPC 2.0 call: {}", harmless(&error));
                unreadable(id_of(text), ErrorKind::InvalidRequest, message)
            }
            Err(error) => unreadable(None, ErrorKind::Parse, format!("the line is not JSON: {}", harmless(&error))),
        }
    })
}

/// What the driver is asked by a call of this caller; without a caller nobody has said hello. A `lineage` is looked up only for a
/// peer that claims to be somebody.
///
/// # Errors
/// Calls that need no driver to be refused.
pub fn understand(
    number: CallId,
    caller: Option<Caller>,
    method: &str,
    params: Option<&RawValue>,
    lineage: impl FnOnce() -> Vec<u32>,
) -> Result<FromSession, ErrorObject> {
    match (caller, method == Hello::METHOD) {
        (None, true) => translate::hello(number, params, lineage),
        (None, false) => {
            let hint = format!("the first call of a connection is `{}`", Hello::METHOD);
            Err(ErrorObject::new(ErrorKind::HelloFirst, "nobody has said hello on this connection", Some(hint)))
        }
        (Some(_), true) => Err(ErrorObject::new(
            ErrorKind::InvalidRequest,
            "this connection has said hello already",
            Some("open another connection to speak for somebody else".into()),
        )),
        (Some(caller), false) => translate::request(number, caller, method, params),
    }
}

/// An error in the words of the decoder, which quotes what the peer has sent: short, and nothing that a terminal or a log obeys.
pub(super) fn harmless(error: &serde_json::Error) -> String {
    const SHOWN_MAX: usize = 500;
    let text = error.to_string();
    let mut shown = String::new();
    for c in text.chars().take(SHOWN_MAX) {
        let is_bidi = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_bidi { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    if text.chars().nth(SHOWN_MAX).is_some() {
        // The place comes last, and is worth more than the end of a long quotation.
        shown.push_str(&format!("... at line {} column {}", error.line(), error.column()));
    }
    shown
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
