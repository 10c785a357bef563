//! Numbers and labels that must be within their bounds: checks that several verbs share.

use roost_proto::limits;

use crate::rejection::Rejection;

/// A number between two others, both allowed.
pub fn range<N: PartialOrd + std::fmt::Display>(what: &'static str, value: N, least: N, most: N) -> Result<(), Rejection> {
    if value < least || value > most {
        return Err(Rejection::BadValue { what, range: format!("between {least} and {most}"), value: value.to_string() });
    }
    Ok(())
}

/// A time from 0, which is off, to the longest that is allowed.
pub fn time(what: &'static str, value_ms: u64, most_ms: u64) -> Result<(), Rejection> {
    if value_ms > most_ms {
        return Err(Rejection::BadValue { what, range: format!("between 0 and {most_ms} ms"), value: format!("{value_ms} ms") });
    }
    Ok(())
}

/// A text that only serves to be the same again.
pub fn label(what: &'static str, text: &str) -> Result<(), Rejection> {
    if text.is_empty() || text.len() > limits::LABEL_BYTES_MAX {
        let range = format!("1 to {} bytes long", limits::LABEL_BYTES_MAX);
        return Err(Rejection::BadValue { what, range, value: format!("a text of {} bytes", text.len()) });
    }
    Ok(())
}
