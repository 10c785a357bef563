/** Stop and interrupt of a tree whose bash children are running: all of it ends, silently, and what was spent stays spent. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, answerOf, launch, script } from "./bed.ts";
import type { Pi } from "./bed.ts";

/** A subagent that starts another one, each inside of a bash with a child of its own that ignores TERM. */
function tree(bed: Bed, name: string) {
	const bash = (file: string) => ({ call: [["bash", { command: `(trap '' TERM; echo $BASHPID > ${bed.file(file)}; exec sleep 1000) & echo $$ > ${bed.file(`${file}-sh`)}; wait` }]] });
	const inner = { name: `${name}-inner`, task: script([bash(`${name}-inner`), { say: "I" }]) };
	return { name, max_subagents_allowed: 1, task: script([launch(inner), bash(name), { say: "O" }]) };
}

const FILES = (name: string) => [name, `${name}-sh`, `${name}-inner`, `${name}-inner-sh`];

async function pidsOf(bed: Bed, name: string): Promise<number[]> {
	await bed.until(`the commands of ${name}`, () => FILES(name).every((file) => existsSync(bed.file(file)) && readFileSync(bed.file(file), "utf8").endsWith("\n")));
	return FILES(name).map((file) => Number(readFileSync(bed.file(file), "utf8")));
}

/** Gone, or a zombie that nobody has looked at yet. */
function isGone(pid: number): boolean {
	try {
		return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.startsWith("Z") ?? true;
	} catch {
		return true;
	}
}

const records = (pi: Pi) => pi.entries().filter((entry) => entry.type === "custom" && entry.customType === "subagents:record").flatMap((entry) => entry.data.results);

test("a stopped subagent ends with all below it, silently, and its budget stays spent", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--subagent-budget", "5"]);
	await pi.does(launch(tree(bed, "one"), { name: "other", task: script([{ until: bed.file("never"), say: "" }]) }));
	const pids = await pidsOf(bed, "one");
	assert.ok(pids.every((pid) => !isGone(pid)));
	await pi.does({ call: [["stop_subagent", { name: ["one"] }]] }, { call: [["stop_subagent", { name: "one" }]] });
	assert.deepEqual(pi.toolResults("stop_subagent").map(answerOf), ["one: stopped", "one: had ended already"]);
	// The answer comes when the last process is gone.
	assert.deepEqual(pids.filter((pid) => !isGone(pid)), []);
	assert.deepEqual(bed.workers().map((worker) => [worker.name, worker.outcome?.status ?? worker.state]).sort(), [["one", "stopped"], ["one-inner", "stopped"], ["other", "running"]]);
	await bed.until("its record", () => records(pi).length > 0);
	assert.deepEqual(records(pi).map((record) => [record.name, record.outcome.status]), [["one", "stopped"]], "a record, and no message");
	await pi.does({ call: [["stop_subagent", { name: "other" }]] });
	assert.deepEqual(pi.arrived(), []);
	assert.equal(bed.roost("status").trees[0].budget_remaining, 2);
});

test("an interrupt ends everything that runs and is queued; nothing resumes by itself", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--subagent-cap", "4"]);
	await pi.does(launch(tree(bed, "one"), tree(bed, "two")));
	const pids = [...await pidsOf(bed, "one"), ...await pidsOf(bed, "two")];
	await pi.does(launch({ name: "queued", task: script([{ say: "never" }]) }));
	assert.equal(bed.worker("queued").state, "queued");
	await pi.ask({ type: "prompt", message: "/subagents stop" });
	await pi.event("what was stopped", (event) => event.method === "notify" && event.message === "Stopped 5 subagents");
	assert.deepEqual(pids.filter((pid) => !isGone(pid)), []);
	assert.ok(bed.workers().every((worker) => worker.outcome.status === "stopped"));
	assert.deepEqual(pi.arrived(), []);
	await bed.until("their records", () => records(pi).length === 3);
	assert.deepEqual(records(pi).map((record) => [record.name, record.outcome.status]).sort(), [["one", "stopped"], ["queued", "stopped"], ["two", "stopped"]]);
	await pi.ask({ type: "prompt", message: "/subagents stop" });
	await pi.event("that there is nothing", (event) => event.method === "notify" && event.message === "Stopped 0 subagents");
	// It can be asked to launch again.
	await pi.does(launch({ name: "again", task: script([{ say: "A" }]) }));
	await pi.until("its answer", () => pi.arrived().length === 1);
	assert.deepEqual(pi.arrived(), [["again", "A"]]);
});

test("what a person stops, here or elsewhere, has a record", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	const never = (name: string) => ({ name, task: script([{ until: bed.file("never"), say: "" }]) });
	await pi.does(launch(never("a"), never("b")));
	await pi.ask({ type: "prompt", message: "/subagents stop a" });
	bed.roost("stop", "b", "--tree", bed.tree());
	await bed.until("their records", () => records(pi).length === 2);
	assert.deepEqual(records(pi).map((record) => [record.name, record.outcome.status]).sort(), [["a", "stopped"], ["b", "stopped"]]);
	assert.deepEqual(pi.arrived(), []);
});

test("what was stopped while the session was closed has a record once it is opened again, and counts", async (t) => {
	const bed = new Bed(t);
	const first = bed.pi();
	await first.does(launch({ name: "a", task: script([{ until: bed.file("never"), say: "" }]) }));
	await bed.until("its turn", () => bed.turns(bed.worker("a").worker).length > 0);
	assert.equal(await first.quit(), 0);
	bed.roost("stop", "a", "--tree", bed.tree());
	for (const _ of ["once", "and not again"]) {
		const pi = bed.pi(["--session", first.session]);
		await bed.until("its record", () => records(pi).length > 0);
		await pi.event("the usage line", (event) => event.widgetKey === "subagents-usage" && event.widgetLines[0].includes("(1 subagent)"));
		await pi.does();
		assert.deepEqual(pi.arrived(), []);
		assert.equal(await pi.quit(), 0);
		assert.deepEqual(records(pi).map((record) => [record.name, record.outcome.status]), [["a", "stopped"]]);
	}
});

test("after somebody else's interrupt the root can launch again", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch({ name: "a", task: script([{ until: bed.file("never"), say: "" }]) }));
	await bed.until("its turn", () => bed.turns(bed.worker("a").worker).length > 0);
	bed.roost("interrupt", "--tree", bed.tree());
	await bed.until("its end", () => bed.worker("a").state === "ended");
	await pi.does(launch({ name: "again", task: script([{ say: "A" }]) }));
	assert.equal(pi.toolResults("subagents").at(-1).isError, false, answerOf(pi.toolResults("subagents").at(-1)));
	await pi.until("its answer", () => pi.arrived().some(([name]) => name === "again"));
});
