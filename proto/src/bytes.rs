//! Texts of the operating system (arguments, environment, paths) on a JSON wire.
//!
//! Linux promises bytes, not UTF-8. What is UTF-8 travels as a JSON string; the rest as `{"bytes": [255, 254]}`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

/// Bytes that are usually text.
#[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string | { bytes: number[] }"))]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Bytes(pub Vec<u8>);

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Text(String),
    Raw { bytes: Vec<u8> },
}

impl From<Wire> for Bytes {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Text(text) => Self(text.into_bytes()),
            Wire::Raw { bytes } => Self(bytes),
        }
    }
}

impl From<Bytes> for Wire {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Wire::Text(text),
            Err(error) => Wire::Raw { bytes: error.into_bytes() },
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Bytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bytes".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Wire::json_schema(generator)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl From<OsString> for Bytes {
    fn from(text: OsString) -> Self {
        Self(text.into_vec())
    }
}

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Bytes {
    /// As a text of the operating system.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_string_and_the_rest_is_kept_byte_by_byte() {
        for (bytes, json) in [(b"a\xc3\xa9\n".to_vec(), "\"aé\\n\""), (vec![255, 254, 65], r#"{"bytes":[255,254,65]}"#)] {
            let bytes = Bytes(bytes);
            assert_eq!(serde_json::to_string(&bytes).unwrap(), json);
            assert_eq!(serde_json::from_str::<Bytes>(json).unwrap(), bytes);
        }
    }
}
