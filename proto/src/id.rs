//! The identities of contract section 1, as newtypes that cannot be mixed up.
//!
//! In text (JSON, command line, logs) an id is its letter and its number, `w12`; in binary it is the bare number.
//! This file does not know how ids are handed out: the core counts, the daemon draws what must be random.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text was not the id it should have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: expected `{letter}` followed by a number, for example `{letter}12`")]
pub struct BadId {
    what: &'static str,
    letter: &'static str,
    text: String,
}

/// A text was no token.
///
/// The text itself stays out of the error: it may be a real token with one letter too many.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token has 32 hexadecimal digits, and this has not")]
pub struct BadToken;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $letter:literal $what:literal)*) => {$(
        $(#[$doc])*
        #[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string"))]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let what = concat!("A ", $what, ": `", $letter, "` and a number.");
                schemars::json_schema!({"type": "string", "pattern": concat!("^", $letter, "[0-9]+$"), "description": what})
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($letter)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map(Self)
                    .ok_or_else(|| BadId { what: $what, letter: $letter, text: text.chars().take(40).collect() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if to.is_human_readable() { to.collect_str(self) } else { to.serialize_u64(self.0) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                if from.is_human_readable() {
                    String::deserialize(from)?.parse().map_err(de::Error::custom)
                } else {
                    u64::deserialize(from).map(Self)
                }
            }
        }
    )*};
}

ids! {
    /// One root session and all that descends from it. Random, so that two state directories never share one.
    TreeId "t" "tree id"
    /// A durable worker. Unique in its daemon's state directory, never reused.
    WorkerId "w" "worker id"
    /// One launch or one resume of a worker: the key for accounting and de-duplication.
    ExecutionId "x" "execution id"
    /// One launch call, or one resume.
    JobId "j" "job id"
    /// One message to a worker or to a lead.
    MessageId "m" "message id"
}

/// The number of an incarnation (one OS process) of an execution, from 1. A frame of an older epoch has no effect.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One OS process of an execution: what the supervisor and the broker name a child by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation {
    /// The execution.
    pub execution: ExecutionId,
    /// Which of its processes.
    pub epoch: Epoch,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.execution, self.epoch)
    }
}

/// A 128-bit capability. Compared in constant time, never printed by `Debug`; in text 32 hexadecimal digits.
#[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string"))]
#[derive(Clone, Copy, Eq)]
pub struct Token([u8; 16]);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Token {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Token".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-9a-fA-F]{32}$", "description": "A 128-bit capability, in hexadecimal digits."})
    }
}

impl Token {
    /// A token of these random bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The token as text, for an environment variable. The only way to see one.
    pub fn reveal(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        // Every byte is looked at whatever the others are, so that the time tells nothing (contract section 14).
        let difference = self.0.iter().zip(other.0.iter()).fold(0_u8, |seen, (a, b)| seen | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = BadToken;
    fn from_str(text: &str) -> Result<Self, BadToken> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(BadToken);
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadToken)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| BadToken)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.serialize_str(&self.reveal()) } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            String::deserialize(from)?.parse().map_err(de::Error::custom)
        } else {
            <[u8; 16]>::deserialize(from).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        assert_eq!("w12".parse(), Ok(WorkerId(12)));
        assert_eq!(serde_json::to_string(&ExecutionId(7)).ok().as_deref(), Some("\"x7\""));
        for bad in ["", "w", "12", "x12", "w-1", "w+1", "w99999999999999999999"] {
            assert!(bad.parse::<WorkerId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_never_shown_by_debug_or_by_its_error() {
        let token = Token::new([0xab; 16]);
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(token.reveal().parse::<Token>(), Ok(token));
        let long = format!("{}c", token.reveal());
        let error = long.parse::<Token>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|text| !text.contains("abab")));
    }
}
