/** Lines, usage, ends of turns, versions: the parts that know no Pi. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LINE_BYTES_MAX, LineReader } from "../../../client/pi/lines.ts";
import { turnEnd } from "../../../client/pi/turn.ts";
import { UsageMeter, nanoDollars } from "../../../client/pi/usage.ts";
import { tooOld } from "../../../client/pi/versions.ts";

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

test("what is too old is told in one line with what to do", () => {
	assert.equal(tooOld("22.19.0", "0.84.2"), undefined);
	assert.equal(tooOld("24.0.1", "1.6.0"), undefined);
	assert.match(tooOld("22.18.9", "1.6.0") ?? "", /Node 22\.18\.9 is too old.*22\.19/);
	assert.match(tooOld("22.19.0", "0.84.1") ?? "", /Pi 0\.84\.1 is too old/);
});
