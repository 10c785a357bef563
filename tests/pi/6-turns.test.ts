/** Turns that end otherwise than well: failed, tried again, aborted, cut; and compactions while results are waited for. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, launch, script } from "./bed.ts";
import type { Pi } from "./bed.ts";

const outcomes = (pi: Pi) => Object.fromEntries(pi.messages("subagent_completion").flatMap((message) => message.details.results.map((result: any) => [result.name, [result.outcome, result.finalOutput]])));

test("a failed turn is a failure with the provider's words, a retried one is none, a cut one says so, an aborted one is partial", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch(
		{ name: "failed", task: script([{ fail: "400: no such thing" }]) },
		{ name: "retried", task: script([{ fail: "503 overloaded", times: 1 }, { say: "recovered" }]) },
		{ name: "cut", model: "faux/faux-short", task: script([{ say: "as far as the limit goes", stop: "length" }]) },
		{ name: "aborted", task: script([{ say: "this far", stop: "aborted" }]) },
		{ name: "silent", task: script([{ say: "" }]) },
	));
	await pi.until("all ends", () => pi.arrived().length === 5);
	const ends = outcomes(pi);
	assert.deepEqual(ends.failed, [{ status: "failed", kind: "provider", message: "400: no such thing" }, ""]);
	assert.deepEqual(ends.retried, [{ status: "completed" }, "recovered"]);
	assert.deepEqual(ends.cut, [{ status: "completed" }, "as far as the limit goes"]);
	assert.deepEqual([ends.aborted[0].status, ends.aborted[1]], ["aborted", "this far"]);
	assert.deepEqual(ends.silent, [{ status: "failed", kind: "no_answer" }, ""]);
	const text = pi.messages("subagent_completion").map((message) => message.content).join("\n");
	assert.match(text, /\[subagent cut completed; cut at the length limit of its model\]/);
	assert.match(text, /\[subagent failed failed: its model's provider failed: 400: no such thing/);
});

test("a turn that fails never returns the answer of an earlier one", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch({ name: "a", task: script([{ say: "good" }]) }));
	await pi.until("the good answer", () => pi.arrived().length === 1);
	await pi.does({ call: [["message_subagent", { name: "a", message: `again\n${script([{ fail: "400: bad" }])}` }]] });
	await pi.until("the second end", () => pi.arrived().length === 2);
	assert.deepEqual(pi.arrived(), [["a", "good"], ["a", ""]]);
	assert.deepEqual(outcomes(pi).a, [{ status: "failed", kind: "provider", message: "400: bad" }, ""]);
});

test("a failed turn of a waiting parent is not its end", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const pi = bed.pi();
	const child = { name: "child", task: script([{ until: gate, say: "C" }]) };
	await pi.does(launch({ name: "parent", max_subagents_allowed: 1, task: script([launch(child), { fail: "400: bad" }], [{ say: "P($ANSWERS)" }]) }));
	await bed.until("a waiting parent", () => bed.workers().length === 2 && bed.worker("parent").state === "waiting");
	writeFileSync(gate, "");
	await pi.until("its end", () => pi.arrived().length === 1);
	assert.deepEqual(outcomes(pi).parent, [{ status: "completed" }, "P(child=C)"]);
});

test("an aborted turn of the root loses no result", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const pi = bed.pi();
	await pi.does(launch({ name: "a", task: script([{ until: gate, say: "A" }]) }));
	await pi.prompt(script([{ call: [["bash", { command: `touch ${bed.file("busy")}; sleep 1000` }]] }, { say: "not reached" }]));
	await bed.until("a tool that runs", () => existsSync(bed.file("busy")));
	writeFileSync(gate, "");
	await bed.until("the end of a", () => bed.worker("a").state === "ended");
	assert.deepEqual(pi.arrived(), [], "the tool is not interrupted by it");
	await pi.ask({ type: "abort" });
	await pi.until("the result", () => pi.arrived().length === 1);
	await pi.until("an idle root", () => pi.events.at(-1)?.type === "agent_settled");
	assert.deepEqual(pi.arrived(), [["a", "A"]]);
});

test("a result that comes during a compaction by hand waits for its end", async (t) => {
	const bed = new Bed(t);
	const [gate, summary] = [bed.file("gate"), bed.file("summary")];
	bed.setting({ enableInstallTelemetry: false, quietStartup: true, compaction: { enabled: true, reserveTokens: 1000, keepRecentTokens: 10 } });
	const pi = bed.pi([], { FAUX_SUMMARY_GATE: summary });
	await pi.does(launch({ name: "a", task: script([{ until: gate, say: "A" }]) }));
	for (const words of ["one ", "two "]) {
		const before = pi.settled();
		await pi.prompt(script([{ say: words, times: 50 }]));
		await pi.until("an idle root", () => pi.settled() > before);
	}
	const compacted = pi.ask({ type: "compact" });
	await pi.event("a compaction", (event) => event.type === "compaction_start");
	await bed.until("the summary's turn", () => bed.turns(undefined).at(-1)?.messages.at(-1)?.[1].includes("<conversation>") ?? false);
	writeFileSync(gate, "");
	await bed.until("the end of a", () => bed.worker("a").state === "ended");
	await pi.ask({ type: "get_state" });
	assert.equal(pi.arrived().length, 0);
	writeFileSync(summary, "");
	assert.equal((await compacted).success, true);
	await pi.until("the result", () => pi.arrived().length === 1);
	const order = pi.events.filter((event) => event.type === "compaction_end" || event.message?.customType === "subagent_completion").map((event) => event.type);
	assert.equal(order[0], "compaction_end");
});

test("a parent whose conversation was compacted while it waited parks, wakes and answers", async (t) => {
	const bed = new Bed(t, { FAUX_WINDOW: "9000" });
	bed.setting({ enableInstallTelemetry: false, quietStartup: true, compaction: { enabled: true, reserveTokens: 1000, keepRecentTokens: 100 } });
	const gate = bed.file("gate");
	const pi = bed.pi(["--subagent-cap", "1"]);
	const child = { name: "child", task: script([{ until: gate, say: "C" }]) };
	const words = { say: "many words ", times: 4000 };
	await pi.does(launch({ name: "parent", max_subagents_allowed: 1, task: script([launch(child), words]) }));
	await bed.until("the child's turn", () => bed.workers().length === 2 && bed.turns(bed.worker("child").worker).length > 0);
	const parent = bed.worker("parent");
	assert.equal(parent.state, "parked");
	const file = `${bed.state}/pi/${bed.tree()}/${parent.worker}.jsonl`;
	const kinds = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line).type);
	assert.ok(kinds.includes("compaction"), "it was compacted");
	writeFileSync(gate, "");
	await pi.until("its end", () => pi.arrived().length === 1);
	const [name, answer] = pi.arrived()[0] as [string, string];
	assert.equal(name, "parent");
	assert.match(answer, /heard: \[subagent child completed\]\nC/);
	const shown = bed.turns(parent.worker).map((turn) => turn.messages.map(([, text]) => text).join("\n"));
	assert.ok(shown.some((text) => text.includes("before this point was compacted") && text.includes("[subagent child completed]")), "with what the summary kept");
});
