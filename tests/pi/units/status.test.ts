/** The lines for a person. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { conversationText } from "../../../client/pi/conversation.ts";
import { collectCombinedUsageStatusLine, sessionUsage } from "../../../client/pi/combined.ts";
import { elapsed, runningLine, usageLine } from "../../../client/pi/status.ts";
import { SUBAGENT_RECORD_TYPE } from "../../../client/pi/contracts.ts";
import { NO_USAGE, compactDetails, detailsFrom, detailsOf, singleResult } from "../../../client/pi/details.ts";
import { completion } from "./fake.ts";
import type { WorkerState, WorkerStatus } from "../../../client/pi/protocol.ts";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const used = (cost: number) => ({ input: 10, output: 2, cache_read: 0, cache_write: 0, cost, turns: 1, tool_calls: 0 });
const worker = (name: string, state: WorkerState): WorkerStatus => ({ name, state, execution: `x-${name}` }) as WorkerStatus;

test("who runs: names and times, overflow, queue and idle; nothing when all have ended", () => {
	const since = new Map([["x-a", 0], ["x-b", 5_000]]);
	assert.equal(runningLine([worker("a", "running"), worker("b", "blocked"), worker("c", "ended")], since, 65_000), "Running 2: a 1m05s, b 1m00s");
	const many = ["a", "b", "c", "d", "e", "f"].map((name) => worker(name, "running"));
	assert.equal(runningLine([...many, worker("q", "queued"), worker("w", "waiting"), worker("p", "parked")], new Map(), 0), "Running 6: a 0s, b 0s, c 0s, d 0s · +2 more · 1 queued · 2 idle");
	assert.equal(runningLine([worker("p", "parked")], since, 0), "Running 0: 1 idle");
	assert.equal(runningLine([worker("a", "ended")], since, 0), undefined);
	assert.deepEqual([0, 59_999, 60_000, 3_600_000, 3_660_000].map(elapsed), ["0s", "59s", "1m00s", "1h00m", "1h01m"]);
});

test("what it cost: from the first subagent on, an unknown price is not free", () => {
	const assistant = { type: "message", message: { role: "assistant", content: [], usage: { input: 100, output: 5, cacheRead: 0, cacheWrite: 0, cost: { total: 0.25 } } } };
	const compaction = { type: "compaction", usage: { input: 7, output: 1, cacheRead: 0, cacheWrite: 0, cost: { total: 0.5 } } };
	const entries = [assistant, { type: "message", message: { role: "user", content: "x" } }, compaction] as never[];
	assert.deepEqual([sessionUsage(entries).input, sessionUsage(entries).cost], [107, 0.75]);
	assert.equal(collectCombinedUsageStatusLine(entries), undefined);
	const workers = [{ name: "a", worker: "w1", executions: 1, own: { input: 2_000, output: 10, cache_read: 30, cache_write: 0, cost: 250_000_000, turns: 1, tool_calls: 0 }, total: {}, workers: 1 }] as never[];
	assert.equal(collectCombinedUsageStatusLine(entries, { tree: "t1", workers }), "WITH SUBS ↑2.1k ↓16 R30 W0 $1.000 (1 subagent)");
	assert.equal(usageLine({ ...NO_USAGE, input: 1_500_000, costUnknown: true }, 2), "WITH SUBS ↑1.5M ↓0 $0.000+? (2 subagents)");
});

test("workers of an earlier tree are others than those of the one that is open, and those of the open one count once", () => {
	const used = { input: 10, output: 1, cache_read: 0, cache_write: 0, cost: 250_000_000, turns: 1, tool_calls: 0 };
	const ended = (tree: string) => ({
		type: "custom_message", customType: "subagent_completion",
		details: detailsOf(tree, [{
			seq: 1, type: "completion", name: "a", worker: "w1", execution: "x1", job: "j1", task_index: 0, outcome: { status: "completed" }, answer: "R", answer_bytes: 1,
			answer_truncated: false, partial: false, usage: { own: used, total: used, workers: 1 },
		}]),
	});
	const live = { tree: "t2", workers: [{ name: "a", worker: "w1", executions: 1, own: used, total: used, workers: 1 }] };
	assert.equal(collectCombinedUsageStatusLine([ended("t1"), ended("t2")] as never[], live), "WITH SUBS ↑20 ↓2 $0.500 (2 subagents)");
});

test("what was stopped counts in a session whose tree is not open any more; messages of others do not", () => {
	const stopped = { ...completion(1, "x1"), outcome: { status: "stopped" as const }, usage: { own: used(250_000_000), total: used(750_000_000), workers: 2 } };
	const data = compactDetails(detailsFrom([singleResult("t1", stopped)]));
	const foreign = { type: "custom_message", customType: "another", details: compactDetails(detailsFrom([singleResult("t1", { ...stopped, worker: "w9", execution: "x9" })])) };
	assert.equal(collectCombinedUsageStatusLine([{ type: "custom", customType: SUBAGENT_RECORD_TYPE, data }, foreign] as never[]), "WITH SUBS ↑10 ↓2 $0.750 (2 subagents)");
});

test("tokens of the session without any money have no known price", () => {
	const said = (cost: object) => [{ type: "message", message: { role: "assistant", content: [], usage: { input: 5, output: 1, cacheRead: 0, cacheWrite: 0, ...cost } } }] as never[];
	assert.deepEqual([said({ cost: { total: 0 } }), said({}), said({ cost: { total: 0.1 } })].map((entries) => sessionUsage(entries).costUnknown), [true, true, undefined]);
});

test("a conversation is readable while its last line is being written", () => {
	const dir = mkdtempSync(join(tmpdir(), "roost-pi-unit-"));
	const file = join(dir, "w1.jsonl");
	const lines = [
		{ type: "session", version: 3 }, { type: "custom_message", content: "do it" },
		{ type: "message", message: { role: "assistant", content: [{ type: "toolCall", name: "bash", arguments: { command: "ls" } }] } },
		{ type: "message", message: { role: "toolResult", toolName: "bash", content: [{ type: "text", text: "a b" }] } },
		{ type: "message", message: { role: "assistant", content: [{ type: "text", text: "done" }] } },
	];
	writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"type":"mess`);
	assert.equal(conversationText(file), '> do it\n\n→ bash {"command":"ls"}\n\n[bash] a b\n\ndone');
	rmSync(dir, { recursive: true });
});

test("what is drawn on a tick is made of modules that can read no disk", () => {
	const seen = new Set<string>();
	const outside = new Set<string>();
	const visit = (name: string): void => {
		if (seen.has(name)) return;
		seen.add(name);
		const text = readFileSync(join(import.meta.dirname, "../../../client/pi", name), "utf8");
		for (const [, from] of text.matchAll(/^import (?!type )[^"]*"([^"]+)";/gm)) {
			if (from?.startsWith("./")) visit(from.slice(2));
			else outside.add(from ?? "");
		}
	};
	visit("surfaces.ts");
	assert.ok(seen.has("status.ts") && seen.has("visible.ts"), [...seen].join());
	assert.deepEqual([...outside].filter((name) => name !== "@earendil-works/pi-tui"), []);
});
