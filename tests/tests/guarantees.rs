//! `docs/guarantees.md` names tests that exist, and every public case and scenario. Reads text, runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The scenarios of the specification.
const SCENARIOS: [&str; 19] = [
    "tree_wider_than_cap",
    "completed_never_counts",
    "broker_kill9_keeps_output",
    "pull_then_push",
    "push_then_pull",
    "two_windows_one_session",
    "recipient_gone_then_back",
    "name_reuse",
    "late_steer_returned",
    "waiting_is_not_idle",
    "fanout_bomb",
    "usage_once",
    "foreign_control_matrix",
    "flood_does_not_starve",
    "journal_every_byte",
    "sync_eio_nth",
    "upgrade_in_place",
    "fan_in_200",
    "parent_of_nothing",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn document() -> String {
    fs::read_to_string(root().join("docs/guarantees.md")).unwrap()
}

/// All `FILE::TEST` of the document.
fn named(document: &str) -> Vec<(String, String)> {
    let words = document.split('`').skip(1).step_by(2);
    words.filter_map(|word| word.split_once("::")).map(|(file, test)| (file.to_owned(), test.to_owned())).collect()
}

/// Whether this text has a test of this name; `scenarios.rs` makes some of theirs from a list.
fn has(text: &str, test: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let declares = text.contains(&format!("fn {test}("));
    let lists = text.split_once("scenarios! {").and_then(|(_, rest)| rest.split_once('}')).map(|(list, _)| list);
    declares || lists.is_some_and(|list| list.split(|c| !is_word(c)).any(|word| word == test))
}

#[test]
fn every_test_that_is_named_exists() {
    let mut missing = Vec::new();
    let named = named(&document());
    assert!(named.len() > 100, "only {} tests are named", named.len());
    for (file, test) in named {
        if file == "FILE" {
            continue;
        }
        let places = [root().join(format!("{file}.rs")), root().join("tests/tests").join(format!("{file}.rs"))];
        let found = places.iter().filter_map(|place| fs::read_to_string(place).ok()).any(|text| has(&text, &test));
        if !found {
            missing.push(format!("{file}::{test}"));
        }
    }
    assert!(missing.is_empty(), "docs/guarantees.md names tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn every_case_and_scenario_has_its_row() {
    let document = document();
    for case in 1..=26 {
        assert!(document.contains(&format!("\n| B{case:02} | ")), "B{case:02} has no row");
    }
    for scenario in SCENARIOS {
        assert!(document.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{scenario}`"))), "{scenario} has no row");
    }
}
