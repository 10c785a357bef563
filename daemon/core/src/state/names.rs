//! The rule for names, and how one is made up. A name is data: it never becomes a path, an argument or a line of a log.

use roost_proto::limits::NAME_BYTES_MAX;

/// Why this is no name, in words that complete "the name X ...".
pub fn defect(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > NAME_BYTES_MAX {
        Some("is longer than 128 bytes")
    } else if name == "." || name == ".." {
        Some("means a directory")
    } else if name.contains('/') {
        Some("contains a slash")
    } else if name.starts_with('-') {
        Some("starts with a dash and would be taken for an option")
    } else if name.chars().any(char::is_control) {
        Some("contains a control character")
    } else if name.trim() != name {
        Some("starts or ends with white space")
    } else {
        None
    }
}

/// The form by which names are compared: upper and lower case are the same.
pub fn folded(name: &str) -> Box<str> {
    name.to_lowercase().into()
}

/// A stem for made-up names out of anything: what the rule does not allow is left out.
pub fn stem(of: &str) -> String {
    let kept: String = of.chars().filter(|c| !c.is_control() && *c != '/' && !c.is_whitespace()).take(40).collect();
    let kept = kept.trim_start_matches(['-', '.']);
    if kept.is_empty() { "worker".into() } else { kept.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_refused_with_the_rule_or_taken_as_they_are() {
        for bad in ["", ".", "..", "../../x", "/etc/x", "a/b", "a\nb", "a\0b", "-rf", " ", &"x".repeat(300), "a\u{1b}[2J b"] {
            assert!(defect(bad).is_some(), "{bad:?}");
        }
        for good in ["🦀", "é", "e\u{301}", "Rev", "a b", "10", &"x".repeat(128)] {
            assert_eq!(defect(good), None, "{good:?}");
        }
        assert_eq!(folded("Rev"), folded("rev"));
    }

    #[test]
    fn a_stem_is_always_the_start_of_a_good_name() {
        for odd in ["", "--help", "/bin/sh", "\n", "..", "a b/c"] {
            assert_eq!(defect(&format!("{}-1", stem(odd))), None, "{odd:?}");
        }
    }
}
