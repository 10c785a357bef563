/** Details: each case of `tests/data/details/`, as the Rust library's tests read them too; how they are recognised; records. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { asyncJobId, compactDetails, detailsFrom, detailsOf, getNestedSubagentResults, isSubagentDetails, launchedDetails, spent, subagentExecutionId, usageTree } from "../../../client/pi/details.ts";
import type { CompactDetails, SingleResult, SubagentDetails } from "../../../client/pi/contracts.ts";
import { Records } from "../../../client/pi/records.ts";
import { FakePi } from "./fake.ts";
import type { Item, Receipt, TreeId, Usage, WorkerResult, WorkerUsage } from "../../../client/pi/protocol.ts";

const NONE: Usage = { input: 0, output: 0, cache_read: 0, cache_write: 0, cost: 0, turns: 0, tool_calls: 0 };

function completion(worker: number, execution: number, job: number, taskIndex: number, own: Partial<Usage>, total: Partial<Usage>, workers: number): Item & { type: "completion" } {
	return {
		seq: execution, type: "completion", name: `n${worker}`, worker: `w${worker}`, execution: `x${execution}`, job: `j${job}`, task_index: taskIndex,
		outcome: { status: "completed" }, answer: "R", answer_bytes: 1, answer_truncated: false, partial: false,
		usage: { own: { ...NONE, ...own }, total: { ...NONE, ...total }, workers, context_tokens: 800 },
	};
}
const tool = (details: SubagentDetails) => ({ role: "toolResult", toolName: "subagents", details });
const custom = (details: SubagentDetails | CompactDetails) => ({ role: "custom", customType: "subagent_completion", details });

type Told = { tree: TreeId; launch: Receipt; tasks: string[] } | { tree: TreeId; completion: WorkerResult } | { again: number };
interface Case {
	stream: Told[];
	results: SingleResult[];
	spent: ReturnType<typeof spent>;
	compact: CompactDetails;
}

const FOLDER = new URL("../../data/details/", import.meta.url);
const CASES = readdirSync(FOLDER).map((file): [string, Case] => [file, JSON.parse(readFileSync(new URL(file, FOLDER), "utf8"))]);

/** The message that brought it. */
function messageOf(told: Told, { stream }: Case): ReturnType<typeof tool> | ReturnType<typeof custom> {
	if ("again" in told) return messageOf(stream[told.again] as Told, { stream } as Case);
	if ("launch" in told) return tool(launchedDetails(told.tree, told.launch, told.tasks));
	return custom(detailsOf(told.tree, [{ seq: 1, type: "completion", ...told.completion }]));
}

test("each case gives its list, its sums and its compact form, live and from what was saved", () => {
	assert.ok(CASES.length >= 10);
	for (const [name, one] of CASES) {
		const messages = one.stream.map((told) => messageOf(told, one));
		const list = getNestedSubagentResults(messages);
		assert.deepEqual(list, one.results, name);
		assert.deepEqual(spent(list), one.spent, name);
		assert.deepEqual(compactDetails(detailsFrom(list)), one.compact, name);
		const saved = getNestedSubagentResults(messages.map(({ details }) => custom(compactDetails(details as SubagentDetails))));
		assert.deepEqual(saved, one.results, name);
		for (const live of ["messages", "usageTree", "aggregated"]) assert.ok(!JSON.stringify(one.compact).includes(live), live);
	}
});

test("several completions in one message, session entries as well as messages, and what else is said is no result", () => {
	const both = detailsOf("t1", [completion(1, 1, 1, 0, { input: 1 }, { input: 1 }, 1), completion(2, 2, 1, 1, { input: 2 }, { input: 2 }, 1)]);
	assert.deepEqual([both.mode, both.asyncJobId, both.asyncTaskIndex], ["parallel", "j1", undefined]);
	const one = detailsOf("t1", [completion(2, 2, 1, 1, {}, {}, 1)]);
	assert.deepEqual([one.mode, asyncJobId(one), one.asyncTaskIndex, subagentExecutionId(one.results[0] as SingleResult)], ["single", "j1", 1, "x2"]);
	const receipt = { job: "j1", tasks: [1, 2].map((id) => ({ name: `n${id}`, worker: `w${id}`, execution: `x${id}`, status: "queued" as const })) };
	const entries = [
		{ type: "message", message: tool(launchedDetails("t1", receipt, [])) }, { type: "custom_message", customType: "subagent_completion", details: both },
		{ role: "user" }, { role: "custom", customType: "other", details: one },
	];
	assert.deepEqual(getNestedSubagentResults(entries).map((result) => result.finalOutput), ["R", "R"]);
	assert.ok(isSubagentDetails(both) && isSubagentDetails(compactDetails(both)));
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
