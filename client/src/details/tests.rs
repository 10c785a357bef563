//! Each case of `tests/data/details/`, as the Pi extension's tests read them too; the usage tree; money.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use roost_proto::id::WorkerId;
use roost_proto::message::usage::WorkerUsage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// What a lead was told, and what comes of it.
#[derive(Deserialize)]
struct Case {
    stream: Vec<Told>,
    results: Value,
    spent: Value,
    compact: Value,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Launch {
        tree: TreeId,
        launch: Receipt,
        tasks: Vec<String>,
    },
    Completion {
        tree: TreeId,
        completion: Box<WorkerResult>,
    },
    /// What stands at this place of the stream comes once more.
    Again {
        again: usize,
    },
}

fn cases() -> BTreeMap<String, Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/details");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases: BTreeMap<_, _> = files
        .map(|path| {
            let case = serde_json::from_str(&fs::read_to_string(&path).unwrap());
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), case.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    assert!(cases.len() >= 10, "only {} cases", cases.len());
    cases
}

impl Case {
    fn details(&self) -> Vec<SubagentDetails> {
        self.stream.iter().map(|told| self.one(told)).collect()
    }

    fn one(&self, told: &Told) -> SubagentDetails {
        match told {
            Told::Launch { tree, launch, tasks } => {
                let tasks: Vec<Task> = tasks.iter().map(|task| Task { task: task.clone(), ..Task::default() }).collect();
                launched(*tree, launch, &tasks)
            }
            Told::Completion { tree, completion } => completed(*tree, completion),
            Told::Again { again } => self.one(&self.stream[*again]),
        }
    }
}

fn list_of(stream: &[SubagentDetails]) -> Vec<SingleResult> {
    reconcile(stream.iter().flat_map(|details| &details.results))
}

fn value_of(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn spent_of(list: &[SingleResult]) -> Value {
    let spent = spent(list);
    json!({"usage": record_of(spent.total, None), "toolCalls": spent.total.tool_calls, "workers": spent.workers, "partial": spent.partial})
}

#[test]
fn each_case_gives_its_list_its_sums_and_its_compact_form() {
    for (name, case) in cases() {
        let list = list_of(&case.details());
        let compacted = value_of(compact(&details_of(list.clone())));
        assert_eq!(value_of(&list), case.results, "{name}: results");
        assert_eq!(spent_of(&list), case.spent, "{name}: spent");
        assert_eq!(compacted, case.compact, "{name}: compact");
        for live_only in ["messages", "usageTree", "aggregated"] {
            assert!(!compacted.to_string().contains(live_only), "{name}: {live_only}");
        }
    }
}

#[test]
fn what_was_saved_counts_as_what_was_live() {
    for (name, case) in cases() {
        let saved = case.details().iter().map(|details| value_of(compact(details))).collect::<Vec<_>>();
        let saved = saved.into_iter().flat_map(|details| serde_json::from_value::<CompactDetails>(details).unwrap().results);
        let list = reconcile(&saved.map(|result| expanded(&result)).collect::<Vec<_>>());
        assert_eq!((value_of(&list), spent_of(&list)), (case.results, case.spent), "{name}");
    }
}

#[test]
fn live_details_read_back_as_they_were_written() {
    for (name, case) in cases() {
        for details in case.details() {
            assert_eq!(serde_json::from_value::<SubagentDetails>(value_of(&details)).unwrap(), details, "{name}");
        }
    }
}

#[test]
fn a_completion_says_its_job_and_task_and_the_sums_of_its_subtree() {
    let case = &cases()["nested"];
    let value = value_of(&case.details()[2]);
    assert_eq!(
        (&value["mode"], &value["delegationMode"], &value["asyncJobId"], &value["asyncTaskIndex"]),
        (&json!("single"), &json!("spawn"), &json!("j1"), &json!(0))
    );
    assert_eq!((&value["aggregatedUsage"]["cost"], &value["aggregatedToolCalls"]), (&json!(0.583_333_338), &json!(4)));
    assert_eq!(value["usageTree"], json!([]));
}

#[test]
fn another_version_of_the_compact_form_is_refused() {
    let mut older = cases()["nested"].compact.clone();
    older["schemaVersion"] = json!(2);
    assert!(serde_json::from_value::<CompactDetails>(older).is_err_and(|error| error.to_string().contains("version 2")));
}

#[test]
fn the_usage_tree_nests_and_its_depth_is_bounded() {
    let worker = |id: u64| WorkerUsage {
        name: format!("n{id}"),
        worker: WorkerId(id),
        lead: (id > 1).then(|| WorkerId(id - 1)),
        executions: 1,
        totals: UsageTotals::default(),
    };
    let chain: Vec<_> = (1..=4_000).map(worker).collect();
    let tree = usage_tree(&chain);
    let mut depth = 0_u32;
    let mut at = tree.as_slice();
    while let [node] = at {
        depth += 1;
        assert_eq!(node.children_not_shown, u64::from(node.children.is_empty()));
        at = &node.children;
    }
    assert_eq!(depth, USAGE_TREE_DEPTH_MAX);
    // Whole details with it can be read by a parser of the usual bound.
    let details = SubagentDetails { usage_tree: tree, ..details_of(Vec::new()) };
    let text = serde_json::to_string(&details).unwrap();
    assert_eq!(serde_json::from_str::<SubagentDetails>(&text).unwrap(), details);
    assert_eq!(usage_tree(&chain[10..12])[0].children.len(), 1);
}

#[test]
fn money_is_exact_there_and_back() {
    for cost in [0, 1, 333_333_333, 999_999_999, 1_000_000_001, 1 << 51] {
        let record = UsageRecord { cost, ..UsageRecord::default() };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<UsageRecord>(&text).unwrap().cost, cost, "{text}");
    }
    let mut negative = value_of(UsageRecord::default());
    negative["cost"] = json!(-1);
    assert!(serde_json::from_value::<UsageRecord>(negative).is_err_and(|error| error.to_string().contains("US dollars")));
}
