/** Details: placeholders and completions become one list, each execution counts once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asyncJobId, compactDetails, detailsOf, getNestedSubagentResults, isSubagentDetails, launchedDetails, spent, subagentExecutionId, usageTree } from "../../../client/pi/details.ts";
import type { SubagentDetails } from "../../../client/pi/contracts.ts";
import { Records } from "../../../client/pi/records.ts";
import { FakePi } from "./fake.ts";
import type { Item, Usage, WorkerUsage } from "../../../client/pi/protocol.ts";

const NONE: Usage = { input: 0, output: 0, cache_read: 0, cache_write: 0, cost: 0, turns: 0, tool_calls: 0 };

function completion(worker: number, execution: number, job: number, taskIndex: number, own: Partial<Usage>, total: Partial<Usage>, workers: number): Item & { type: "completion" } {
	return {
		seq: execution, type: "completion", name: `n${worker}`, worker: `w${worker}`, execution: `x${execution}`, job: `j${job}`, task_index: taskIndex,
		outcome: { status: "completed" }, answer: "R", answer_bytes: 1, answer_truncated: false, partial: false,
		usage: { own: { ...NONE, ...own }, total: { ...NONE, ...total }, workers, context_tokens: 800 },
	};
}
const receipt = (job: number, ...ids: number[]) => launchedDetails(
	{ job: `j${job}`, tasks: ids.map((id) => ({ name: `n${id}`, worker: `w${id}`, execution: `x${id}`, status: "queued" as const })) }, ids.map((id) => `task ${id}`),
);
const tool = (details: SubagentDetails) => ({ role: "toolResult", toolName: "subagents", details });
const custom = (details: SubagentDetails) => ({ role: "custom", customType: "subagent_completion", details });

test("a completion takes the place of its placeholder once, in any order", () => {
	const launched = tool(receipt(1, 1, 2));
	const second = custom(detailsOf([completion(2, 2, 1, 1, { input: 10, cost: 5 }, { input: 10, cost: 5 }, 1)]));
	const list = getNestedSubagentResults([launched, second, second, launched, { role: "user" }, { role: "custom", customType: "other", details: second.details }]);
	assert.equal(list.length, 2);
	assert.deepEqual(list.map((one) => [one.task, one.outcome?.status, one.finalOutput]), [["task 1", undefined, ""], ["task 2", "completed", "R"]]);
	assert.equal(asyncJobId(second.details), "j1");
	assert.equal(second.details.asyncTaskIndex, 1);
	assert.equal(subagentExecutionId(list[1] as never), "x2");
	const sum = spent(list);
	assert.deepEqual([sum.usage.input, sum.usage.cost, sum.workers], [10, 5e-9, 2]);
});

test("several completions in one message, and session entries as well as messages", () => {
	const both = detailsOf([completion(1, 1, 1, 0, { input: 1 }, { input: 1 }, 1), completion(2, 2, 1, 1, { input: 2 }, { input: 2 }, 1)]);
	assert.equal(both.mode, "parallel");
	assert.equal(both.asyncJobId, "j1");
	assert.equal(both.asyncTaskIndex, undefined);
	const entries = [{ type: "message", message: tool(receipt(1, 1, 2)) }, { type: "custom_message", customType: "subagent_completion", details: both }];
	assert.deepEqual(getNestedSubagentResults(entries).map((one) => one.finalOutput), ["R", "R"]);
});

test("of a worker that was resumed the newest totals count, and it is no new worker", () => {
	const total = { input: 234, cost: 437_500_000 };
	const list = getNestedSubagentResults([
		tool(receipt(1, 1)), custom(detailsOf([completion(1, 1, 1, 0, { input: 200 }, { input: 200 }, 3)])), custom(detailsOf([completion(1, 10, 2, 0, { input: 200 }, total, 3)])),
	]);
	const sum = spent(list);
	assert.deepEqual([list.length, sum.usage.input, sum.usage.cost, sum.workers], [2, 234, 0.4375, 3]);
	assert.deepEqual([list[0]?.usage.contextTokens, list[0]?.subtree.contextTokens], [800, 0]);
});

test("the compact form has sums and references, and counts the same", () => {
	const details = detailsOf([completion(1, 1, 1, 0, { input: 200, cost: 250_000_000 }, { input: 234, cost: 437_500_000, tool_calls: 3 }, 3)]);
	const compact = compactDetails(details);
	assert.deepEqual([compact.schemaVersion, compact.usageSummary.subagentCount, compact.usageSummary.costUsd, compact.usageSummary.inputTokens, compact.usageSummary.subagentIds], [3, 3, 0.4375, 234, undefined]);
	for (const live of ["messages", "usageTree", "aggregated"]) assert.ok(!JSON.stringify(compact).includes(live), live);
	assert.ok(isSubagentDetails(compact) && isSubagentDetails(details));
	const again = getNestedSubagentResults([{ role: "custom", customType: "subagent_completion", details: compact }]);
	assert.deepEqual([spent(again).usage.cost, spent(again).workers], [0.4375, 3]);
	for (const no of [undefined, null, 1, {}, { mode: "single" }, { mode: "single", delegationMode: "spawn", results: [1] }]) assert.equal(isSubagentDetails(no), false);
});

test("the usage tree nests, and its depth is bounded", () => {
	const worker = (id: number): WorkerUsage => ({ name: `n${id}`, worker: `w${id}`, lead: id > 1 ? `w${id - 1}` : null, executions: 1, own: NONE, total: NONE, workers: 1 });
	const chain = Array.from({ length: 100 }, (_, at) => worker(at + 1));
	let depth = 0;
	for (let at = usageTree(chain); at.length > 0; at = at[0]?.children ?? []) {
		depth += 1;
		assert.equal(at[0]?.childrenNotShown ?? 0, at[0]?.children ? 0 : 1);
	}
	assert.equal(depth, 40);
	assert.equal(usageTree(chain.slice(10, 12))[0]?.children?.length, 1);
});

test("a record of another tree, or of none, is no record of this one's execution", () => {
	const pi = new FakePi();
	const records = (tree: string) => {
		const made = new Records(pi.api);
		made.begin(pi.ctx);
		made.setTree(tree);
		made.add(one);
	};
	const one = completion(1, 1, 1, 0, {}, {}, 1);
	pi.entries.push({ type: "custom", customType: "subagents:record", data: { results: [{ execution: "x1" }] } });
	for (const tree of ["t1", "t1", "t2"]) records(tree);
	assert.deepEqual(pi.entries.slice(1).map((entry) => (entry.data as { roost: { keys: string[] } }).roost.keys), [["t1/x1"], ["t2/x1"]]);
});
