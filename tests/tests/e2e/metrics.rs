//! `roost metrics`: what is counted, against work whose numbers are known; and the docs name each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use roost_tests::real::{Home, Tree};

/// Each sample by its name and labels.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn a_chain_that_parks_is_counted_and_every_name_is_in_the_docs() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    let script = r#"if [ "${ROOST_WAKE-}" = 1 ]; then exit; fi
        roost spawn --name kid -- false >&2; exec roost park"#;
    tree.spawn_with("lead", &["--descendants", "1"], script);
    tree.roost(["wait", "lead"]).run().ok();
    let text = home.roost(["metrics"]).run().ok().text().to_owned();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let samples = samples(&text);
    let is = |name: &str, value: f64| assert_eq!(samples.get(name), Some(&value), "{name}: {text}");
    is("roost_admissions_total", 2.0);
    is(r#"roost_wakes_total{kind="final"}"#, 1.0);
    is(r#"roost_wakes_total{kind="promoted"}"#, 0.0);
    is(r#"roost_parks_total{event="parked"}"#, 1.0);
    is(r#"roost_executions_ended_total{outcome="completed"}"#, 1.0);
    is(r#"roost_executions_ended_total{outcome="failed"}"#, 1.0);
    is("roost_trees", 1.0);
    is(r#"roost_workers{state="live"}"#, 0.0);
    is("roost_outbox_items", 0.0);
    is("roost_cost_usd", 0.0);
    assert!(samples["roost_commit_seconds_count"] > 2.0 && samples["roost_connections"] >= 1.0, "{text}");

    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")).unwrap();
    let named = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let missing: BTreeSet<&str> = named.filter(|name| !docs.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/operations.md does not tell of {missing:?}");
}

#[test]
fn nobody_starts_a_daemon_to_count_what_it_has_not_done() {
    let home = Home::new();
    let done = home.roost(["metrics"]).run();
    assert!(done.code() != 0 && done.err().contains("no daemon"), "{done}");
}
