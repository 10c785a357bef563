//! Values, and the kinds of them: how each is written in a variable or a file, and what it may be.

use std::collections::BTreeMap;

use roost_proto::duration;
use roost_proto::limits::{CAP_MAX, LABEL_BYTES_MAX};
use toml::de::DeValue;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    None,
    /// A count.
    Number(u64),
    /// Milliseconds.
    Time(u64),
    /// A word or a path.
    Word(String),
    /// Caps of groups.
    Caps(BTreeMap<String, u32>),
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number in a range.
    Number {
        /// What is counted.
        unit: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A time up to so many milliseconds.
    Time {
        /// The most.
        most_ms: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// `auto`, `own`, `off`, or an absolute path.
    Cgroup,
    /// Names of groups with their caps.
    Caps,
}

impl Kind {
    /// What a value counts.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Number { unit, .. } => unit,
            Self::Time { .. } => "ms",
            Self::Word(_) | Self::Cgroup => "word",
            Self::Caps => "workers by group",
        }
    }

    /// What is good, for whoever wrote something else.
    pub fn expected(&self) -> String {
        match self {
            Self::Number { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Time { most_ms } if *most_ms == u64::MAX => "a time: \"500ms\", \"30s\", \"5m\", \"2h\", \"7d\", or seconds".to_owned(),
            Self::Time { most_ms } => {
                format!("a time up to {}: \"500ms\", \"30s\", \"5m\", \"2h\", \"7d\", or seconds", time(*most_ms))
            }
            Self::Word(words) => format!("one of {}", quoted(words)),
            Self::Cgroup => "\"auto\", \"own\", \"off\", or the absolute path of a cgroup2 directory".to_owned(),
            Self::Caps => format!("names of groups with whole numbers from 1 to {CAP_MAX}"),
        }
    }

    /// A value as a variable has it. Its range is not looked at.
    ///
    /// # Errors
    /// What is good instead.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let bad = || format!("`{}` is not {}", text.escape_debug(), self.expected());
        match self {
            Self::Number { .. } => text.parse().map(Value::Number).map_err(|_| bad()),
            Self::Time { .. } => duration::parse(text).map(Value::Time).map_err(|_| bad()),
            Self::Word(words) if words.contains(&text) => Ok(Value::Word(text.to_owned())),
            Self::Cgroup if ["auto", "own", "off"].contains(&text) || text.starts_with('/') => Ok(Value::Word(text.to_owned())),
            Self::Word(_) | Self::Cgroup => Err(bad()),
            Self::Caps => {
                let caps = text.split(',').map(|part| {
                    let (name, number) = part.rsplit_once('=').filter(|(name, _)| !name.is_empty())?;
                    Some((name.to_owned(), number.parse().ok()?))
                });
                caps.collect::<Option<_>>().map(Value::Caps).ok_or_else(|| format!("write NAME=N,NAME=N: {}", bad()))
            }
        }
    }

    /// A value as a file has it. Its range is not looked at.
    pub(crate) fn take(&self, value: &DeValue<'_>) -> Result<Value, String> {
        let bad = || format!("expected {}, and this is {}", self.expected(), described(value));
        match (self, value) {
            (Self::Number { .. }, DeValue::Integer(_)) => number(value).map(Value::Number).ok_or_else(bad),
            (Self::Time { .. }, DeValue::Integer(_)) => {
                number(value).and_then(|seconds| seconds.checked_mul(1_000)).map(Value::Time).ok_or_else(bad)
            }
            (Self::Time { .. } | Self::Word(_) | Self::Cgroup, DeValue::String(text)) => self.read(text).map_err(|_| bad()),
            (Self::Caps, DeValue::Table(table)) => {
                let caps = table.iter().map(|(name, cap)| {
                    let cap = number(cap.get_ref()).and_then(|cap| u32::try_from(cap).ok());
                    cap.map(|cap| (name.get_ref().to_string(), cap))
                });
                caps.collect::<Option<_>>().map(Value::Caps).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }

    /// Whether a value of this kind is in its range.
    ///
    /// # Errors
    /// What is good instead.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let is_good = match (self, value) {
            (Self::Number { least, most, .. }, Value::Number(number)) => (least..=most).contains(&number),
            (Self::Time { most_ms }, Value::Time(ms)) => ms <= most_ms,
            (Self::Caps, Value::Caps(caps)) => {
                caps.iter().all(|(name, cap)| (1..=CAP_MAX).contains(cap) && (1..=LABEL_BYTES_MAX).contains(&name.len()))
            }
            _ => true,
        };
        if is_good { Ok(()) } else { Err(format!("expected {}, and this is {value}", self.expected())) }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Time(ms) => f.write_str(&time(*ms)),
            Self::Word(word) => f.write_str(word),
            Self::Caps(caps) if caps.is_empty() => f.write_str("none"),
            Self::Caps(caps) => f.write_str(&caps.iter().map(|(name, cap)| format!("{name}={cap}")).collect::<Vec<_>>().join(",")),
        }
    }
}

/// A time in the largest unit that says it exactly.
fn time(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let exact = units.iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    exact.map_or_else(|| if ms == 0 { "0".to_owned() } else { format!("{ms}ms") }, |(unit, name)| format!("{}{name}", ms / unit))
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// A whole number that is not negative.
pub(crate) fn number(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(integer) = value else { return None };
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// What stands there, in a few words: not all of it, which may be long or secret.
pub(crate) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) if number.as_str().len() <= 20 => format!("the number {}", number.as_str()),
        DeValue::Integer(_) => "a very large number".to_owned(),
        DeValue::String(text) if text.chars().count() <= 40 => format!("the text \"{}\"", text.escape_debug()),
        DeValue::String(_) => "a long text".to_owned(),
        DeValue::Float(_) => "a number with a point".to_owned(),
        DeValue::Boolean(it) => format!("{it}"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_they_may_be_written() {
        for (ms, text) in [(0, "0"), (250, "250ms"), (1_500, "1500ms"), (90_000, "90s"), (1_200_000, "20m"), (2_592_000_000, "30d")] {
            assert_eq!(Value::Time(ms).to_string(), text);
            assert_eq!(duration::parse(text), Ok(ms));
        }
    }

    #[test]
    fn caps_of_groups_are_read_as_they_are_shown() {
        let caps = Kind::Caps.read("writers=1,a=b=4").unwrap();
        assert_eq!(caps, Value::Caps(BTreeMap::from([("a=b".into(), 4), ("writers".into(), 1)])));
        assert_eq!(Kind::Caps.read(&caps.to_string()), Ok(caps));
        for bad in ["", "writers", "=1", "writers=x", "writers=1,"] {
            assert!(Kind::Caps.read(bad).is_err_and(|why| why.contains("NAME=N")), "{bad}");
        }
        assert!(Kind::Caps.check(&Value::Caps(BTreeMap::from([("a".into(), 0)]))).is_err());
    }
}
