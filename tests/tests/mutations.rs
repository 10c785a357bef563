//! Every known bug of `tests/mutations` still applies to the core. That each is caught is shown by `tests/mutations/run`, which takes
//! longer; its last results are in `docs/mutations.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The patches by name, with their text.
fn patches() -> BTreeMap<String, String> {
    let folder = fs::read_dir(root().join("tests/mutations")).unwrap().map(|entry| entry.unwrap().path());
    let patches = folder.filter(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())).collect()
}

/// The hunks of a patch: the file, and the lines that it must have there, one after the other.
fn hunks(patch: &str) -> Vec<(String, Vec<String>)> {
    let mut hunks = Vec::new();
    let mut file = String::new();
    for line in patch.lines().skip_while(|line| !line.starts_with("--- ")) {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name.to_owned();
        } else if line.starts_with("@@ ") {
            hunks.push((file.clone(), Vec::new()));
        } else if let Some((_, lines)) = hunks.last_mut()
            && let Some(old) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-').filter(|_| !line.starts_with("--- ")))
        {
            lines.push(old.to_owned());
        }
    }
    hunks
}

#[test]
fn every_known_bug_still_applies() {
    let patches = patches();
    assert!(patches.len() >= 10, "only {} bugs are known", patches.len());
    let mut failed = Vec::new();
    for (name, patch) in &patches {
        let hunks = hunks(patch);
        assert!(!hunks.is_empty(), "{name} changes nothing");
        for (file, lines) in hunks {
            assert!(file.starts_with("daemon/core/src/"), "{name} changes {file}, which is not the core");
            let text = fs::read_to_string(root().join(&file)).unwrap_or_default();
            let there: Vec<&str> = text.lines().collect();
            let places = there.windows(lines.len()).filter(|window| window.iter().zip(&lines).all(|(there, old)| there == old)).count();
            if places != 1 {
                failed.push(format!("{name}: its lines are in {file} {places} times"));
            }
        }
    }
    let told = "make them anew against the core as it is now, then run tests/mutations/run";
    assert!(failed.is_empty(), "these bugs no longer apply; {told}:\n{}", failed.join("\n"));
}

/// Each is told of in the table of results, so that nobody adds one without having seen it caught.
#[test]
fn every_known_bug_was_caught() {
    let table = fs::read_to_string(root().join("docs/mutations.md")).unwrap();
    let missing: Vec<String> =
        patches().into_keys().filter(|name| !table.lines().any(|line| line.starts_with(&format!("| `{name}`")))).collect();
    assert!(missing.is_empty(), "docs/mutations.md has no result of {missing:?}: run tests/mutations/run");
    assert!(!table.contains("**survives**"), "a known bug survives");
}

/// The simulation would hide it if the exhaustive cases looked at nothing.
#[test]
fn the_exhaustive_cases_bite_by_themselves() {
    let table = fs::read_to_string(root().join("docs/mutations.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let last = rows.filter_map(|line| line.trim_end_matches(" |").rsplit(" | ").next());
    let caught = last.filter(|what| !["-", "not run", "yes"].contains(what)).count();
    assert!(caught >= 10, "the exhaustive cases have caught only {caught}: MUTATION_TESTS=exhaustive tests/mutations/run NAME...");
}
