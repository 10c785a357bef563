//! Placeholders and completions, sums, and the JSON of both forms.

use roost_proto::message::usage::WorkerUsage;
use serde_json::{Value, json};

use super::*;

fn receipt(job: u64, executions: &[u64]) -> Receipt {
    let task = |id: &u64| json!({"name": format!("n{id}"), "worker": format!("w{id}"), "execution": format!("x{id}"), "status": "queued"});
    serde_json::from_value(json!({"job": format!("j{job}"), "tasks": executions.iter().map(task).collect::<Vec<_>>()})).unwrap()
}

fn result(worker: u64, execution: u64, job: u64, task_index: u32, usage: Value) -> WorkerResult {
    serde_json::from_value(json!({"name": format!("n{worker}"), "worker": format!("w{worker}"), "execution": format!("x{execution}"),
        "job": format!("j{job}"), "task_index": task_index, "outcome": {"status": "completed"}, "answer": "R", "answer_bytes": 1, "usage": usage}))
    .unwrap()
}

/// Own and total of one counter each.
fn used(own: (u64, u64), total: (u64, u64), workers: u64, context: u64) -> Value {
    json!({"own": {"input": own.0, "cost": own.1, "tool_calls": 1}, "total": {"input": total.0, "cost": total.1, "tool_calls": workers},
           "workers": workers, "context_tokens": context})
}

#[test]
fn a_completion_takes_the_place_of_its_placeholder_once() {
    let tasks = ["one", "two"].map(|task| Task { task: task.into(), ..Task::default() });
    let launched = Details::launched(&receipt(1, &[1, 2]), &tasks);
    assert!(launched.results.iter().all(SingleResult::is_placeholder));
    let second = Details::completed(&result(2, 2, 1, 1, used((10, 5), (10, 5), 1, 0)));
    // Out of order, told twice, and the launch once more at the end.
    let list = reconcile([&launched, &second, &second, &launched]);
    assert_eq!(list.len(), 2);
    assert_eq!((list[0].is_placeholder(), list[0].task.as_str()), (true, "one"));
    assert_eq!((list[1].is_placeholder(), list[1].task.as_str(), list[1].final_output.as_str()), (false, "two", "R"));
    assert_eq!((second.async_job_id, second.async_task_index), (Some(JobId(1)), Some(1)));
    let spent = spent(&list);
    assert_eq!((spent.total.input, spent.total.cost, spent.workers), (10, 5, 2));
}

#[test]
fn a_completion_is_matched_by_its_slot_when_the_placeholder_names_no_execution_of_it() {
    // The host made its placeholder up before it had the receipt.
    let mut launched = Details::launched(&receipt(3, &[9]), &[]);
    launched.results[0].execution = ExecutionId(0);
    let completed = Details::completed(&result(9, 9, 3, 0, used((1, 1), (1, 1), 1, 0)));
    let list = reconcile([&launched, &completed, &completed]);
    assert_eq!((list.len(), list[0].execution), (1, ExecutionId(9)));
}

#[test]
fn b25_a_leaf_counts_once_whatever_is_above_it_and_a_resume_is_no_new_worker() {
    // Root, A, B, C with own cost 0.5, 0.25, 0.125, 0.0625 and input 1000, 200, 30, 4. The root is told of A alone.
    let a = used((200, 250_000_000), (234, 437_500_000), 3, 800);
    let launched = Details::launched(&receipt(1, &[1]), &[]);
    let first = Details::completed(&result(1, 1, 1, 0, a.clone()));
    // The root messages A once more: another execution, another job, the same totals.
    let resumed = Details::completed(&result(1, 7, 2, 0, a));
    let list = reconcile([&launched, &first, &resumed, &first]);
    assert_eq!(list.len(), 2);
    let spent = spent(&list);
    assert_eq!((spent.total.cost, spent.total.input, spent.workers), (437_500_000, 234, 3));
    assert_eq!((500_000_000 + spent.total.cost, 1_000 + spent.total.input), (937_500_000, 1_234));
    assert_eq!((list[0].usage.context_tokens, list[0].subtree.context_tokens), (800, 0));
}

#[test]
fn the_live_json_has_the_names_that_hosts_know() {
    let details = Details::completed(&result(1, 1, 1, 0, used((200, 250_000_000), (234, 437_500_000), 3, 800)));
    let value = serde_json::to_value(&details).unwrap();
    assert_eq!(
        (&value["mode"], &value["delegationMode"], &value["asyncJobId"], &value["asyncTaskIndex"]),
        (&json!("single"), &json!("spawn"), &json!("j1"), &json!(0))
    );
    assert_eq!(
        (&value["aggregatedUsage"]["cost"], &value["aggregatedToolCalls"], &value["usageTree"]),
        (&json!(0.4375), &json!(3), &json!([]))
    );
    let one = &value["results"][0];
    assert_eq!(
        (&one["usage"]["input"], &one["usage"]["cost"], &one["usage"]["contextTokens"], &one["toolCalls"]),
        (&json!(200), &json!(0.25), &json!(800), &json!(1))
    );
    assert_eq!((&one["exitCode"], &one["finalOutput"]), (&json!(0), &json!("R")));
    assert_eq!(serde_json::from_value::<Details>(value).unwrap(), details);
}

#[test]
fn the_compact_form_has_sums_and_references_and_nothing_recursive() {
    let details = Details::completed(&result(1, 1, 1, 0, used((200, 250_000_000), (234, 437_500_000), 3, 800)));
    let compact = CompactDetails::from(&details);
    let value = serde_json::to_value(&compact).unwrap();
    assert_eq!(
        (&value["schemaVersion"], &value["usageSummary"]["subagentCount"], &value["usageSummary"]["costUsd"]),
        (&json!(3), &json!(3), &json!(0.4375))
    );
    assert_eq!((&value["usageSummary"]["inputTokens"], value["usageSummary"].get("subagentIds")), (&json!(234), None));
    let text = value.to_string();
    for live_only in ["messages", "usageTree", "aggregated"] {
        assert!(!text.contains(live_only), "{live_only}");
    }
    assert_eq!(serde_json::from_value::<CompactDetails>(value.clone()).unwrap(), compact);
    let mut older = value;
    older["schemaVersion"] = json!(2);
    assert!(serde_json::from_value::<CompactDetails>(older).is_err_and(|error| error.to_string().contains("version 2")));
}

#[test]
fn a_failure_keeps_its_text_and_says_why() {
    let mut failed = result(1, 1, 1, 0, Value::Null);
    failed.end.outcome = Outcome::Failed(roost_proto::outcome::Failure::Provider { message: "boom".into() });
    let single = SingleResult::from(&failed);
    assert_eq!((single.exit_code, single.final_output.as_str(), single.subtree_workers), (1, "R", 1));
    assert!(single.error_message.is_some_and(|text| text.contains("boom")));
}

#[test]
fn the_usage_tree_nests_and_its_depth_is_bounded() {
    let worker = |id: u64| WorkerUsage {
        name: format!("n{id}"),
        worker: WorkerId(id),
        lead: (id > 1).then(|| WorkerId(id - 1)),
        executions: 1,
        totals: serde_json::from_value(used((1, 0), (1, 0), 1, 0)).unwrap(),
    };
    let chain: Vec<_> = (1..=4_000).map(worker).collect();
    let tree = usage_tree(&chain);
    let mut depth = 0;
    let mut at = tree.as_slice();
    while let [node] = at {
        depth += 1;
        assert_eq!(node.children_not_shown, u64::from(node.children.is_empty()));
        at = &node.children;
    }
    assert_eq!(depth, USAGE_TREE_DEPTH_MAX);
    // Whole details with it can be read by a parser of the usual bound.
    let details = Details { usage_tree: tree, ..Details::of(Vec::new()) };
    let text = serde_json::to_string(&details).unwrap();
    assert_eq!(serde_json::from_str::<Details>(&text).unwrap(), details);
    assert_eq!(usage_tree(&chain[10..12])[0].children.len(), 1);
}

#[test]
fn money_is_exact_there_and_back() {
    for cost in [0, 1, 333_333_333, 999_999_999, 1_000_000_001, 1 << 51] {
        let record = UsageRecord { cost, ..UsageRecord::default() };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<UsageRecord>(&text).unwrap().cost, cost, "{text}");
    }
    assert!(serde_json::from_str::<UsageRecord>(r#"{"cost":-1}"#).is_err());
}
