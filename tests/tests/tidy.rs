//! Keeps the walls of ARCHITECTURE.md: who imports whom, how long files are, what every file opens with. Reads text, runs nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a file, its tests not counted.
const LINES_MAX: usize = 300;

/// Where a sleep is allowed, how many there are, and why: no event tells what is waited for, or the time itself is the matter.
const SLEEPS: [(&str, usize, &str); 17] = [
    ("client/src/policy.rs", 1, "nothing tells that the next broker listens"),
    ("client/src/start.rs", 1, "nothing tells that another one's daemon has given the lock back"),
    ("client/tests/it/start.rs", 1, "a dial that finds nobody listening leaves no trace"),
    ("daemon/src/driver.rs", 1, "the deadline of the core, beside all events"),
    ("daemon/src/journal/tests.rs", 2, "a file's size tells of no change; a lock that is given back late is the case"),
    ("daemon/src/identity.rs", 1, "nothing tells that a process is through with its exec"),
    ("daemon/src/session/accept.rs", 1, "descriptors may be short for what others hold, and come back unseen"),
    ("daemon/src/supervisor/hold.rs", 1, "waiting for a file's lock has no end at a time"),
    ("tests/examples/soak.rs", 1, "a random moment is the case"),
    ("tests/src/real.rs", 1, "what no descriptor tells of"),
    ("tests/src/real/agents/actor/talk.rs", 1, "between two daemons nothing tells when the next one is there"),
    ("tests/src/real/sampler.rs", 1, "how often is looked"),
    ("tests/tests/cases.rs", 1, "an idle daemon's use of the processor over a time is the case"),
    ("tests/tests/e2e/hostile.rs", 1, "a slow peer is the case"),
    ("tests/tests/faults/stopped.rs", 1, "a process that stands still for a time is the case"),
    ("tests/tests/hostile/onlooker.rs", 1, "how often is looked"),
    ("tests/tests/hostile/single.rs", 1, "a slow peer is the case"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All Rust files below a folder, with their paths from the root.
fn files(below: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // What the package registry has put there is not ours.
                if path.file_name().is_none_or(|name| name != "node_modules") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust file below {below}");
    found
}

/// The part of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap()
}

/// Lines of a room that name what it may not know.
fn trespasses(room: &str, forbidden: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files(room) {
        if name.ends_with("/tests.rs") || name.contains("/tests/") {
            continue;
        }
        for (number, line) in without_tests(&text).lines().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("//") && forbidden.iter().any(|word| code.contains(word)) {
                found.push(format!("{name}:{}: {code}", number + 1));
            }
        }
    }
    found
}

#[test]
fn no_room_imports_what_the_table_forbids() {
    let core =
        ["roost_proto::message::launch", "roost_proto::rpc::Call", "roost_proto::frame", "std::fs", "std::env", "std::thread", "tokio"];
    let table: [(&str, &[&str]); 7] = [
        ("config/src", &["roost_core", "roostd", "use roost::", "std::process", "std::net", "tokio"]),
        ("proto/src", &["roost_core", "roostd", "std::fs", "std::env::", "tokio"]),
        ("daemon/core/src", &core),
        ("daemon/src/journal", &["crate::session", "crate::process", "crate::driver", "crate::perform"]),
        ("daemon/src/session", &["roost_core::state", "crate::journal", "crate::process", "crate::driver", "crate::perform"]),
        ("daemon/src/process", &["crate::journal", "crate::session", "roost_core", "crate::driver"]),
        ("client/src", &["roost_core", "roostd::"]),
    ];
    let found: Vec<String> = table.into_iter().flat_map(|(room, forbidden)| trespasses(room, forbidden)).collect();
    assert!(found.is_empty(), "these lines stand in the wrong room:\n{}", found.join("\n"));
}

#[test]
fn only_the_process_wing_has_unsafe_code_and_starts_processes() {
    let mut found = trespasses("daemon/src", &["unsafe ", "process::Command"]);
    found.retain(|line| !line.starts_with("daemon/src/process"));
    assert!(found.is_empty(), "outside of daemon/src/process:\n{}", found.join("\n"));
}

#[test]
fn verbs_do_not_import_each_other() {
    // What several verbs need is in these.
    let shared = ["authority", "bounds", "close_out", "unblock"];
    let verbs: Vec<String> = files("daemon/core/src/lifecycle")
        .into_iter()
        .filter_map(|(name, _)| Some(Path::new(&name).file_stem()?.to_str()?.to_owned()))
        .filter(|verb| !shared.contains(&verb.as_str()))
        .collect();
    let mut found = Vec::new();
    for verb in &verbs {
        for line in trespasses("daemon/core/src/lifecycle", &[&format!("lifecycle::{verb}")]) {
            found.push(line);
        }
    }
    assert!(found.is_empty(), "verbs that know other verbs:\n{}", found.join("\n"));
}

#[test]
fn every_bound_is_listed_for_people() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let (bounds, listed) = (read("proto/src/limits.rs"), read("docs/limits.md"));
    let names: Vec<&str> =
        bounds.lines().filter_map(|line| line.strip_prefix("pub const ")).filter_map(|rest| rest.split(':').next()).collect();
    assert!(names.len() > 50, "the constants are not read: {names:?}");
    let missing: Vec<&&str> = names.iter().filter(|name| !listed.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/limits.md does not name {missing:?}");
    // And the other way round: what the list names is there.
    let of_the_list = |word: &&str| word.contains('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let unknown: Vec<&str> = listed.split('`').filter(of_the_list).filter(|word| !names.contains(word)).collect();
    assert!(unknown.is_empty(), "docs/limits.md names {unknown:?}, which proto/src/limits.rs has not");
}

#[test]
fn an_agent_takes_sixty_lines() {
    let agent = fs::read_to_string(root().join("examples/agent.rs")).unwrap();
    let lines = agent.lines().count();
    assert!(lines <= 60, "examples/agent.rs has {lines} lines, and what it does without the library's help may be the library's");
}

#[test]
fn nothing_sleeps_but_where_no_event_tells() {
    let sleep = ["sleep", "("].concat();
    let mut found = Vec::new();
    for room in ["proto", "config", "daemon", "client", "tests", "examples", "fuzz"] {
        for (name, text) in files(room) {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//") && line.contains(&sleep)).count();
            found.extend(std::iter::repeat_n(name, lines));
        }
    }
    for (place, count, reason) in SLEEPS {
        let sleeps = found.iter().filter(|name| *name == place).count();
        assert_eq!(sleeps, count, "{place} ({reason})");
    }
    found.retain(|name| !SLEEPS.iter().any(|(place, _, _)| name == place));
    assert!(found.is_empty(), "these sleep; await an event, or say in SLEEPS why there is none: {found:?}");
}

#[test]
fn every_file_says_what_it_is_and_is_no_longer_than_it_may_be() {
    let mut found = Vec::new();
    for room in ["proto", "config", "daemon", "client/src", "tests", "examples"] {
        for (name, text) in files(room) {
            if !text.starts_with("//!") {
                found.push(format!("{name} does not open with `//!`"));
            }
            let lines = without_tests(&text).lines().count();
            let is_test = name.contains("tests");
            if lines > LINES_MAX && !is_test {
                found.push(format!("{name} has {lines} lines without its tests"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
