//! Which known word somebody may have meant.

/// The known word that is nearest to this one, if any is near.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Long words are not looked at: what is typed wrong is a word, and the look costs the product of both lengths.
    if word.len() > 64 {
        return None;
    }
    let most = (word.chars().count() / 3).clamp(1, 3);
    let ranked = known.into_iter().map(|known| (distance(word, known), known));
    ranked.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// How many characters must be put in, left out, changed, or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(|word| word.to_lowercase().chars().collect::<Vec<char>>());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swaps = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                if swaps { best.min(rows[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognized_and_another_word_is_not() {
        let known = ["cap", "budget", "stop_grace", "idle", "hold"];
        for (word, meant) in [
            ("cpa", Some("cap")),
            ("buget", Some("budget")),
            ("stop-grace", Some("stop_grace")),
            ("Cap", Some("cap")),
            ("retries", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
