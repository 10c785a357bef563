/** Lines, usage, ends of turns, versions: the parts that know no Pi. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { conversationText } from "../../../client/pi/conversation.ts";
import { TOOL_NAMES, taskOf } from "../../../client/pi/launch.ts";
import { LINE_BYTES_MAX, LineReader } from "../../../client/pi/lines.ts";
import type { WorkerStatus } from "../../../client/pi/protocol.ts";
import { runningLine } from "../../../client/pi/status.ts";
import { turnEnd } from "../../../client/pi/turn.ts";
import { UsageMeter, isUnpriced, nanoDollars } from "../../../client/pi/usage.ts";
import { tooOld } from "../../../client/pi/versions.ts";
import { visible, visibleLine } from "../../../client/pi/visible.ts";

test("a line ends at LF alone, wherever the pieces are cut", () => {
	const text = '{"a":"x\u2028y\u0085z"}\n\n{"b":"é"}\n{"c"';
	const bytes = Buffer.from(text);
	for (let size = 1; size <= bytes.length; size++) {
		const reader = new LineReader();
		const lines: string[] = [];
		for (let at = 0; at < bytes.length; at += size) lines.push(...reader.push(bytes.subarray(at, at + size)));
		assert.deepEqual(lines, ['{"a":"x\u2028y\u0085z"}', '{"b":"é"}'], `pieces of ${size}`);
	}
});

test("a line that is too long is an error, not memory", () => {
	const reader = new LineReader();
	const piece = Buffer.alloc(1 << 20, "a");
	assert.throws(() => {
		for (let sent = 0; sent <= LINE_BYTES_MAX; sent += piece.length) reader.push(piece);
	}, /more than/);
});

test("money is counted in whole nano-dollars, and no price is not free", () => {
	assert.equal(nanoDollars(0.1 + 0.2), 300_000_000);
	for (const nonsense of [undefined, NaN, -1, Infinity, 1e300]) assert.equal(nanoDollars(nonsense), undefined);
	const meter = new UsageMeter();
	for (let turn = 0; turn < 10; turn++) meter.turn({ input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 0.1 } });
	meter.toolCall();
	meter.context(77);
	const report = meter.report();
	assert.deepEqual(report, {
		sequence: 1, input: 10, output: 20, cache_read: 30, cache_write: 40, cost: 1_000_000_000, cost_unknown: false, turns: 10, tool_calls: 1, context_tokens: 77,
	});
	meter.turn({ input: 1, output: 0, cacheRead: 0, cacheWrite: 0, cost: { total: 0 } }, { input: 0, output: 0 });
	assert.equal(meter.report().cost_unknown, true);
	const free = { input: 1, output: 0, cacheRead: 0, cacheWrite: 0, cost: { total: 0 } };
	assert.deepEqual([isUnpriced(free), isUnpriced(free, { input: 0, output: 1 }), isUnpriced({ ...free, input: 0 })], [true, false, false]);
	assert.equal(meter.report().sequence, 3);
});

test("how a run ended: its last message says it, and nothing said before is its answer", () => {
	const said = (stopReason: string, text: string, errorMessage?: string) =>
		turnEnd({ content: [{ type: "thinking", text: "hidden" }, { type: "text", text }], stopReason, ...(errorMessage ? { errorMessage } : {}) });
	assert.deepEqual(said("stop", "yes"), { answer: "yes", ended: {} });
	assert.deepEqual(said("length", "half"), { answer: "half", ended: { truncated: true } });
	assert.deepEqual(said("length", " "), { ended: { truncated: true } });
	assert.deepEqual(said("error", "", "boom"), { ended: { error: { kind: "provider", message: "boom" } } });
	assert.deepEqual(said("error", "part", "This operation was aborted"), { answer: "part", ended: { aborted: true } });
	assert.deepEqual(said("aborted", "part"), { answer: "part", ended: { aborted: true } });
	assert.deepEqual(turnEnd(undefined), { ended: {} });
});

test("text of others moves no cursor: in receipts, completions, lines and views", () => {
	const bad = "\u001b]0;x\u0007\u009b2J\u202ea\rb\tc";
	const good = "\\x1b]0;x\\x07\\x9b2J\\u{202e}a\\x0db";
	assert.equal(visible(`${bad}\nd`), `${good}\tc\nd`);
	assert.equal(visibleLine(`${bad}\nd`), `${good}\\x09c\\x0ad`);
	const worker = { name: "\u001b[2J", state: "running", execution: "x1" } as WorkerStatus;
	assert.equal(runningLine([worker], new Map(), 0), "Running 1: \\x1b[2J 0s");
	const dir = mkdtempSync(join(tmpdir(), "roost-pi-unit-"));
	writeFileSync(join(dir, "w1.jsonl"), `${JSON.stringify({ type: "custom_message", content: bad })}\n`);
	assert.equal(conversationText(join(dir, "w1.jsonl")), `> ${good}\tc`);
	rmSync(dir, { recursive: true });
});

test("a subagent has the tools of its launcher, or some of them", () => {
	const pi = { getActiveTools: () => ["read", "grep", "subagents"], getThinkingLevel: () => "off" } as unknown as ExtensionAPI;
	const toolsOf = (tools?: string[]) => {
		const { argv } = taskOf({ task: "x", ...(tools ? { tools } : {}) }, pi, {} as ExtensionContext) as { argv: string[] };
		return argv[argv.indexOf("--tools") + 1]?.split(",").filter((name) => !TOOL_NAMES.includes(name));
	};
	assert.deepEqual(toolsOf(), ["read", "grep"]);
	assert.deepEqual(toolsOf(["grep", "subagents"]), ["grep"]);
	assert.deepEqual(toolsOf([]), []);
	assert.throws(() => toolsOf(["read", "bash"]), /you do not have the tools bash yourself; there are: read, grep/);
});

test("what is too old is told in one line with what to do", () => {
	assert.equal(tooOld("22.19.0", "0.84.2"), undefined);
	assert.equal(tooOld("24.0.1", "1.6.0"), undefined);
	assert.match(tooOld("22.18.9", "1.6.0") ?? "", /Node 22\.18\.9 is too old.*22\.19/);
	assert.match(tooOld("22.19.0", "0.84.1") ?? "", /Pi 0\.84\.1 is too old/);
});
