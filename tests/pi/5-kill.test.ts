/** `kill -9` of the broker, the supervisor, a worker inside of a tool, the root Pi: nothing is lost, and nothing comes twice. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, answerOf, launch, script } from "./bed.ts";

const gated = (bed: Bed, name: string) => ({ name, task: script([{ until: bed.file(`gate-${name}`), say: name.toUpperCase() }]) });
const open = (bed: Bed, name: string) => writeFileSync(bed.file(`gate-${name}`), "");
const runs = (bed: Bed, name: string) => bed.until(`${name} at work`, () => bed.turns(bed.worker(name).worker).length > 0);

function parentOf(bed: Bed, name: string, child: string) {
	return { name, max_subagents_allowed: 1, task: script([launch(gated(bed, child)), { say: "I wait" }], [{ say: `${name}($ANSWERS)` }]) };
}

for (const victim of ["broker", "supervisor"] as const) {
	test(`the ${victim} is killed while subagents run, wait and are queued`, async (t) => {
		const bed = new Bed(t);
		const pi = bed.pi(["--subagent-cap", "3"]);
		await pi.does(launch(parentOf(bed, "parent", "child"), gated(bed, "b"), gated(bed, "c"), gated(bed, "d")));
		for (const name of ["parent", "b", "c"]) await runs(bed, name);
		const status = bed.roost("daemon", "status");
		const before = bed.workers().filter((worker) => worker.pid).map((worker) => worker.pid);
		process.kill(status[`${victim}_pid`], "SIGKILL");
		open(bed, "b");
		await pi.until("the first result", () => pi.arrived().length === 1);
		assert.notEqual(bed.roost("daemon", "status").broker_pid, status.broker_pid);
		assert.ok(before.length >= 3);
		// A launch after it goes to the daemon that is there now.
		await pi.does(launch(gated(bed, "e")));
		for (const name of ["c", "d", "e", "child"]) open(bed, name);
		await pi.until("all results", () => pi.arrived().length >= 5);
		await pi.until("an idle root", () => pi.events.at(-1)?.type === "agent_settled");
		const expected = [["b", "B"], ["c", "C"], ["d", "D"], ["e", "E"], ["parent", "parent(child=CHILD)"]];
		assert.deepEqual(pi.arrived().sort(), expected);
		assert.ok(bed.workers().every((worker) => worker.outcome.status === "completed"), "nobody was harmed");
		assert.ok(bed.workers().filter((worker) => ["b", "c"].includes(worker.name)).every((worker) => worker.epoch === 1), "and nobody started twice");
		assert.equal(await pi.quit(), 0);
	});
}

test("a worker is killed inside of a tool: told once, what it had started is ended, and it can be resumed", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	const pidFile = bed.file("pid");
	// What can be resumed was saved: at the end of a first turn.
	await pi.does(launch({ name: "victim", task: script([{ say: "one" }]) }));
	await pi.until("its first answer", () => pi.arrived().length === 1);
	const command = script([{ call: [["bash", { command: `echo $$ > ${pidFile}; sleep 1000` }]] }, { say: "not reached" }]);
	await pi.does({ call: [["message_subagent", { name: "victim", message: `work\n${command}` }]] });
	await bed.until("its command", () => existsSync(pidFile) && readFileSync(pidFile, "utf8").endsWith("\n"));
	const { pid, worker } = bed.worker("victim");
	process.kill(pid, "SIGKILL");
	await pi.until("that it ended", () => pi.arrived().length === 2);
	const told = pi.messages("subagent_completion").at(-1);
	assert.deepEqual(told.details.results.map((one: { outcome: unknown }) => one.outcome), [{ status: "failed", kind: "crash", signal: 9 }]);
	assert.match(told.content, /ended by signal 9; what it had written until then/);
	assert.equal(existsSync(`/proc/${readFileSync(pidFile, "utf8").trim()}/exe`), false, "its command is gone");
	// A crash in the middle of a write leaves a part of a line.
	const file = `${bed.state}/pi/${bed.tree()}/${worker}.jsonl`;
	const whole = readFileSync(file, "utf8");
	appendFileSync(file, '{"type":"message","id":"torn');
	await pi.does({ call: [["message_subagent", { name: "victim", message: `go on\n${script([{ say: "resumed" }])}` }]] });
	await pi.until("the answer of the resumed one", () => pi.arrived().length === 3);
	assert.deepEqual(pi.arrived().at(-1), ["victim", "resumed"]);
	const turns = bed.turns(worker);
	assert.deepEqual(turns.at(-1)?.messages.filter(([role]) => role !== "system").map(([role]) => role), ["user", "assistant", "user", "assistant", "user"], "with its conversation");
	const now = readFileSync(file, "utf8");
	assert.ok(now.startsWith(whole) && !now.includes("torn"), "the torn line is cut, and nothing before it is lost");
	for (const line of now.trimEnd().split("\n")) JSON.parse(line);
});

test("the root Pi is killed: the next one of its session gets what was owed, once", async (t) => {
	const bed = new Bed(t);
	const first = bed.pi();
	await first.does(launch(gated(bed, "a"), gated(bed, "b"), gated(bed, "c")));
	open(bed, "a");
	await first.until("the first result", () => first.arrived().length === 1);
	await first.until("that it is stored", () => first.events.at(-1)?.type === "agent_settled");
	await first.kill();
	open(bed, "b");
	await bed.until("the end of b", () => bed.worker("b").state === "ended");
	const next = bed.pi(["--session", first.session]);
	await next.until("the second result", () => next.arrived().length === 1);
	open(bed, "c");
	await next.until("the third result", () => next.arrived().length === 2);
	await next.until("an idle root", () => next.events.at(-1)?.type === "agent_settled");
	assert.deepEqual(next.arrived(), [["b", "B"], ["c", "C"]]);
	const shown = bed.turns(undefined).at(-1)?.messages.filter(([role]) => role === "user").map(([, text]) => text).join("\n") ?? "";
	for (const name of ["a", "b", "c"]) assert.equal(shown.split(`[subagent ${name} completed]`).length, 2, `${name} is in the conversation once`);
	const records = next.entries().filter((entry) => entry.customType === "subagents:record").flatMap((entry) => entry.data.results.map((one: { name: string }) => one.name));
	assert.deepEqual(records.sort(), ["a", "b", "c"]);
	assert.equal(bed.roost("status").trees.length, 1, "it is the same tree");
});

test("the root Pi is killed between the message and its acknowledgement: it does not come again", async (t) => {
	const bed = new Bed(t);
	const first = bed.pi();
	await first.does(launch(gated(bed, "a")));
	open(bed, "a");
	// The event of the message is what Pi says just before it is on disk; the acknowledgement follows with the next event.
	await first.event("the message", (event) => event.type === "message_end" && event.message.customType === "subagent_completion");
	await first.kill();
	const stored = first.entries().filter((entry) => entry.type === "custom_message" && entry.customType === "subagent_completion").length;
	const next = bed.pi(["--session", first.session]);
	if (stored === 0) await next.until("the result", () => next.arrived().length === 1);
	await next.does();
	await bed.until("that nothing is owed", () => bed.roost("inbox", "--tree", bed.tree()).items.length === 0);
	const all = next.entries().filter((entry) => entry.type === "custom_message" && entry.customType === "subagent_completion");
	assert.equal(all.length, 1);
});

for (const how of ["an abort", "the end of its input", "SIGTERM"]) {
	test(`while the daemon does not answer, ${how} ends a tool's call`, async (t) => {
		const bed = new Bed(t);
		const pi = bed.pi();
		await pi.does();
		const { broker_pid } = bed.roost("daemon", "status");
		process.kill(broker_pid, "SIGSTOP");
		bed.ends.push(() => process.kill(broker_pid, "SIGCONT"));
		await pi.prompt(script([launch({ name: "a", task: script([{ say: "A" }]) }), { say: "not reached" }]));
		await pi.event("the call", (event) => event.type === "tool_execution_start");
		if (how === "an abort") {
			await pi.ask({ type: "abort" });
			assert.match(answerOf(pi.toolResults("subagents")[0]), /^launch: given up/);
			return;
		}
		if (how === "SIGTERM") pi.process.kill("SIGTERM");
		else pi.process.stdin?.end();
		await pi.left();
	});
}
