//! Nano-dollars as a JSON number of US dollars. Exact there and back up to 2^51 nano-dollars, two million dollars.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::usage::USAGE_MAX;

const NANOS: f64 = 1e9;

#[allow(clippy::cast_precision_loss)]
pub(super) fn serialize<S: Serializer>(nanos: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*nanos as f64 / NANOS)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let usd = f64::deserialize(from)?;
    let nanos = (usd * NANOS).round();
    if nanos >= 0.0 && nanos <= USAGE_MAX as f64 {
        Ok(nanos as u64)
    } else {
        Err(de::Error::custom(format!("{usd} is no amount of US dollars")))
    }
}
