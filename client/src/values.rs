//! Values of the command line: durations, caps, allowances, variables; and files where `-` is standard input.
//!
//! A bad value says which forms are good.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::{OsStringValueParser, TypedValueParser};
use roost::proto::bytes::Bytes;
pub use roost::proto::duration::parse as duration;
use roost::proto::limits::{BUDGET_MAX, CAP_MAX, DEPTH_MAX};
use roost::proto::message::launch::{Allowance, Rest};

use crate::failure::Failure;

/// The wall clock.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

/// A cap: at least 1.
pub fn cap(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a cap of 0 would let nothing run; the least is 1 (`roost pause` holds the admissions of an open tree)".into()),
        Ok(number @ 1..=CAP_MAX) => Ok(number),
        Ok(_) | Err(_) => Err(format!("a cap is a whole number from 1 to {CAP_MAX}")),
    }
}

/// A budget: at least 1.
pub fn budget(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| (1..=BUDGET_MAX).contains(number)).ok_or(format!("a budget is a whole number from 1 to {BUDGET_MAX}"))
}

/// How many descendants: a number, or `rest`.
pub fn allowance(text: &str) -> Result<Allowance, String> {
    if text == "rest" {
        return Ok(Allowance::Rest(Rest::Rest));
    }
    let number = text.parse().ok().filter(|number| *number <= BUDGET_MAX);
    number.map(Allowance::Exactly).ok_or(format!("write a whole number from 0 to {BUDGET_MAX}, or `rest` for all that is left"))
}

/// How deep a tree may be.
pub fn depth(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth)).ok_or(format!("a depth is a whole number from 1 to {DEPTH_MAX}"))
}

/// How many there may be: a whole number, 0 included.
pub fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number".to_owned())
}

/// A size: bytes, or with K, M, G, T.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{}` is not a size: write 500M, 1G, or a whole number of bytes", text.escape_debug());
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(bad()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(bad)
}

/// How many descendants: a number.
pub fn descendants(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number <= BUDGET_MAX).ok_or(format!("write a whole number from 0 to {BUDGET_MAX}"))
}

/// `NAME=N`: the cap of a group.
pub fn group_cap(text: &str) -> Result<(String, u32), String> {
    let (name, number) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=N")?;
    Ok((name.to_owned(), cap(number)?))
}

/// `auto`, `own`, `off`, or a directory. The daemon has a working directory of its own, so a relative path would mean another one.
pub fn cgroup_parser() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|word| {
        let is_good = ["auto", "own", "off"].iter().any(|known| word == *known) || Path::new(&word).is_absolute();
        if is_good { Ok(word) } else { Err("write auto, own, off, or the absolute path of a cgroup2 directory") }
    })
}

/// `K=V`: a variable.
pub fn variable(text: &OsStr) -> Result<(Bytes, Bytes), Failure> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0);
    let at = at.ok_or_else(|| Failure::usage(format!("--env {}: write NAME=VALUE", text.display()), None))?;
    Ok((Bytes(bytes[..at].to_vec()), Bytes(bytes[at + 1..].to_vec())))
}

/// A text of the command line, or of standard input for `-`.
pub fn text(word: String) -> Result<String, Failure> {
    if word != "-" {
        return Ok(word);
    }
    String::from_utf8(read_input("-".as_ref())?).map_err(|_| Failure::usage("the text on standard input is not UTF-8", None))
}

/// All bytes of a file, or of standard input for `-`.
pub fn read_input(path: &OsStr) -> Result<Vec<u8>, Failure> {
    if path == "-" {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|source| Failure::Input { what: "standard input".into(), source });
    }
    std::fs::read(path).map_err(|source| Failure::Input { what: path.display().to_string(), source })
}

/// Local time, to the millisecond.
pub fn clock_time(ms: u64) -> String {
    local(ms, "%F %T%.3f")
}

/// Local time, to the second.
pub fn time_of_day(ms: u64) -> String {
    local(ms, "%F %T")
}

fn local(ms: u64, format: &str) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map(|time| time.to_zoned(jiff::tz::TimeZone::system()).strftime(format).to_string()).unwrap_or_else(|| "?".into())
}

/// Processes, as many as a line bears.
pub fn pids(pids: &[u32]) -> String {
    let (first, rest) = pids.split_at(pids.len().min(8));
    let first = first.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if rest.is_empty() { first } else { format!("{first} and {} more", rest.len()) }
}

/// The word for a value of an enum, as in the JSON.
pub fn wire_word(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned()
}

/// So many of something.
pub fn counted(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// A word of a shell that stands for exactly these bytes.
pub fn shell_quoted(word: &OsStr) -> OsString {
    let mut quoted = b"'".to_vec();
    for byte in word.as_bytes() {
        if *byte == b'\'' { quoted.extend_from_slice(b"'\\''") } else { quoted.push(*byte) }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_and_budgets() {
        assert_eq!((cap("1"), budget("9007199254740991")), (Ok(1), Ok(BUDGET_MAX)));
        for bad in ["0", "-1", "1.5", "abc", "1000000000000", ""] {
            assert!(cap(bad).is_err_and(|text| text.contains("cap")), "{bad}");
        }
        // As far as the daemon goes, and no further.
        assert_eq!(cap("100000"), Ok(CAP_MAX));
        assert!(cap("100001").is_err_and(|text| text.contains("from 1 to 100000")));
        assert!(budget("9007199254740992").is_err() && allowance("-1").is_err());
        assert_eq!(group_cap("a=b=3"), Ok(("a=b".into(), 3)));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("0", 0), ("7", 7), ("1k", 1 << 10), ("500M", 500 << 20), ("1GiB", 1 << 30), ("2TB", 2 << 40)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "G", "-1", "1.5G", "1X", "99999999999T"] {
            assert!(size(bad).is_err_and(|why| why.contains("500M")), "{bad}");
        }
    }

    #[test]
    fn a_quoted_word_is_one_word() {
        assert_eq!(shell_quoted("a'b $c".as_ref()), "'a'\\''b $c'");
    }
}
