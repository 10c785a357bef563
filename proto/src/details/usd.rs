//! Nano-dollars as a JSON number of US dollars. Exact there and back up to 2^51 nano-dollars, two million dollars.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::usage::{NANO_DOLLARS, nano_dollars};

#[allow(clippy::cast_precision_loss)]
pub(super) fn serialize<S: Serializer>(nanos: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*nanos as f64 / NANO_DOLLARS)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let usd = f64::deserialize(from)?;
    nano_dollars(usd).ok_or_else(|| de::Error::custom(format!("{usd} is no amount of US dollars")))
}
