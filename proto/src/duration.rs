//! Durations as people write them, for the flags of the command and of the daemon alike.

/// `500ms`, `30s`, `5m`, `2h`, `7d`, or a number of seconds; in milliseconds.
///
/// # Errors
/// Anything else, with the forms that are good.
pub fn parse(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a duration: write 500ms, 30s, 5m, 2h, 7d, or a whole number of seconds");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("30d", 2_592_000_000), ("7", 7_000), ("0", 0)]
        {
            assert_eq!(parse(text), Ok(ms));
        }
        for bad in ["", "s", "-1", "1.5s", "1w", "1 s", "99999999999999999999", "18446744073709551615h", "５s"] {
            assert!(parse(bad).is_err_and(|text| text.contains("500ms, 30s, 5m, 2h, 7d")), "{bad}");
        }
    }
}
