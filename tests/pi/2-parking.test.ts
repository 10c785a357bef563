/**
 * Three levels at cap 1: each parent's process is really gone while it is parked, comes back with its conversation, and the answer
 * arrives.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, launch, script } from "./bed.ts";

/** Whether any process of this worker is there: the mark is in its environment. */
function isAlive(pid: number): boolean {
	return existsSync(`/proc/${pid}`);
}

test("three levels at cap 1: parked parents are gone, come back with their conversation, and the answer arrives", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const leaf = { name: "leaf", task: script([{ until: gate, say: "L" }]) };
	const middle = { name: "middle", max_subagents_allowed: 1, task: script([launch(leaf), { say: "middle waits" }], [{ say: "M($ANSWERS)" }]) };
	const top = { name: "top", max_subagents_allowed: 2, task: script([launch(middle), { say: "top waits" }], [{ say: "T($ANSWERS)" }]) };
	const pi = bed.pi(["--subagent-cap", "1"]);
	await pi.prompt(script([launch(top), { say: "launched" }]));
	// The leaf runs: its model is asked. So both above have given their one slot away.
	await pi.until("a leaf that runs", () => bed.turns(undefined).length > 0 && pi.settled() >= 1);
	await bed.until("the leaf's turn", () => bed.workers().some((worker) => worker.name === "leaf" && bed.turns(worker.worker).length > 0));
	const [above, below, last] = ["top", "middle", "leaf"].map((name) => bed.worker(name));
	assert.deepEqual([above.state, below.state, last.state], ["parked", "parked", "running"]);
	const pids = [above, below].map((worker) => bed.turns(worker.worker)[0]?.pid as number);
	for (const pid of pids) assert.equal(isAlive(pid), false, `${pid} is gone`);
	assert.equal(isAlive(last.pid), true);
	writeFileSync(gate, "");
	await pi.until("the answer", () => pi.arrived().length > 0);
	assert.deepEqual(pi.arrived(), [["top", "T(middle=M(leaf=L))"]]);
	for (const [worker, first] of [[above, pids[0]], [below, pids[1]]] as const) {
		const turns = bed.turns(worker.worker);
		const woken = turns.at(-1);
		assert.notEqual(woken?.pid, first, "another process");
		const roles = woken?.messages.filter(([role]) => role !== "system").map(([role]) => role);
		assert.deepEqual(roles, ["user", "assistant", "toolResult", "assistant", "user"], "with the whole conversation");
		assert.equal(bed.worker(worker.name).epoch, 2);
	}
	// What was parked is one conversation in one file.
	const file = `${bed.state}/pi/${bed.tree()}/${above.worker}.jsonl`;
	const entries = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
	assert.equal(entries.filter((entry) => entry.type === "session").length, 1);
	assert.equal(await pi.quit(), 0);
});

test("a parked conversation that was changed is refused, and never begun anew", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const pi = bed.pi(["--subagent-cap", "1"]);
	const child = { name: "child", task: script([{ until: gate, say: "C" }]) };
	await pi.does(launch({ name: "parent", max_subagents_allowed: 1, task: script([launch(child), { say: "I wait" }]) }));
	await bed.until("a parked parent", () => bed.workers().length === 2 && bed.worker("parent").state === "parked" && bed.worker("child").state === "running");
	const { worker } = bed.worker("parent");
	const file = `${bed.state}/pi/${bed.tree()}/${worker}.jsonl`;
	const changed = readFileSync(file, "utf8").replace("I wait", "I went");
	writeFileSync(file, changed);
	writeFileSync(gate, "");
	await pi.until("its end", () => pi.arrived().length === 1);
	const { outcome } = pi.messages("subagent_completion")[0].details.results[0];
	assert.deepEqual([outcome.status, outcome.kind], ["failed", "startup"]);
	const errors = bed.worker("parent").stderr_paths.map((path: string) => readFileSync(path, "utf8"));
	assert.match(errors.at(-1), /is not the conversation that was saved/);
	assert.equal(readFileSync(file, "utf8"), changed, "nobody wrote to it");
	assert.equal(bed.turns(worker).length, 2, "and its model was not asked again");
});
