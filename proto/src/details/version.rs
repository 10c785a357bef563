//! The version of the compact form as a type: what has another one is refused where it is read.

use serde::{Deserialize, Deserializer, Serialize, de};

/// The version of the compact form.
pub const COMPACT_SCHEMA_VERSION: u32 = 3;

/// The number 3 and nothing else.
#[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "3"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "u32")]
pub struct SchemaVersion;

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SchemaVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SchemaVersion".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"const": COMPACT_SCHEMA_VERSION, "description": "The number 3 and nothing else."})
    }
}

impl From<SchemaVersion> for u32 {
    fn from(_: SchemaVersion) -> Self {
        COMPACT_SCHEMA_VERSION
    }
}

impl<'de> Deserialize<'de> for SchemaVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            COMPACT_SCHEMA_VERSION => Ok(Self),
            other => Err(de::Error::custom(format!("schema version {other}, and this reads version {COMPACT_SCHEMA_VERSION}"))),
        }
    }
}
