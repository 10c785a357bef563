/** Sessions side by side, and one session in two Pis: nobody sees another's results. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { Bed, EXTENSION, HERE, PATIENCE_MS, PI_ENTRY, answerOf, launch, script } from "./bed.ts";

const gated = (bed: Bed, name: string, answer: string) => ({ name, task: script([{ until: bed.file(`gate-${answer}`), say: answer }]) });

test("two sessions at once, with subagents of the same names, never see each other's results", async (t) => {
	const bed = new Bed(t);
	const [one, two] = [bed.pi(), bed.pi()];
	await Promise.all([one.does(launch(gated(bed, "a", "A1"), gated(bed, "b", "B1"))), two.does(launch(gated(bed, "a", "A2"), gated(bed, "b", "B2")))]);
	await two.does({ call: [["stop_subagent", { name: "b" }]] });
	for (const name of ["A1", "B1", "A2"]) writeFileSync(bed.file(`gate-${name}`), "");
	await one.until("its results", () => one.arrived().length === 2);
	await two.until("its result", () => two.arrived().length === 1);
	assert.deepEqual(one.arrived().sort(), [["a", "A1"], ["b", "B1"]]);
	assert.deepEqual(two.arrived(), [["a", "A2"]]);
	await one.does({ call: [["get_subagent_result", { name: "a" }]] }, { call: [["get_subagent_result", { name: "w3" }]] });
	assert.deepEqual(one.toolResults("get_subagent_result").map(answerOf)[0], "[subagent a completed]\nA1");
	assert.match(answerOf(one.toolResults("get_subagent_result")[1]), /^unknown_worker/);
	assert.equal(bed.roost("status").trees.length, 2);
});

test("one session in two Pis: the newer one has the lease, the older one is told and gets nothing more", async (t) => {
	const bed = new Bed(t);
	const older = bed.pi();
	await older.does(launch(gated(bed, "a", "A")));
	const newer = bed.pi(["--session", older.session]);
	await older.event("the warning", (event) => event.method === "notify" && /Another Pi has opened this session/.test(event.message));
	writeFileSync(bed.file("gate-A"), "");
	await newer.until("the result", () => newer.arrived().length === 1);
	await older.ask({ type: "get_state" });
	assert.deepEqual(older.arrived(), []);
	assert.equal(bed.roost("status").trees.length, 1);
	assert.equal(await older.quit(), 0);
	assert.equal(bed.roost("status").trees.length, 1, "who has lost the lease closes nothing");
});

test("a session that is kept nowhere takes its tree with it, a kept one's waits; forgotten conversations go", async (t) => {
	const bed = new Bed(t);
	const kept = bed.pi();
	await kept.does(launch({ name: "k", task: script([{ say: "K" }]) }));
	await kept.until("its result", () => kept.arrived().length === 1);
	assert.equal(await kept.quit(), 0);
	// Of a tree that the daemon has forgotten.
	mkdirSync(`${bed.state}/pi/t0123`);
	writeFileSync(`${bed.state}/pi/t0123/w1.jsonl`, "");
	const memory = bed.pi(["--no-session"]);
	await memory.does(launch(gated(bed, "a", "A")));
	const { sessionId } = (await memory.ask({ type: "get_state" })).data;
	const trees = bed.roost("status").trees as { tree: string; key: string; closed_at_ms: number | null }[];
	const { tree } = trees.find(({ key }) => key === `pi:${sessionId}`) as { tree: string };
	assert.deepEqual(readdirSync(`${bed.state}/pi`).filter((name) => name !== tree), trees.map((one) => one.tree).filter((name) => name !== tree), "and the others' conversations stay");
	await bed.until("its turn", () => bed.turns(bed.workers(tree)[0].worker).length > 0);
	const { pid } = bed.workers(tree)[0];
	assert.equal(await memory.quit(), 0);
	const isOpen = (name: string) => bed.roost("status").trees.some((one: { tree: string; closed_at_ms: number | null }) => one.tree === name && !one.closed_at_ms);
	await bed.until("that the tree is closed", () => !isOpen(tree));
	assert.ok(trees.every((one) => one.tree === tree || isOpen(one.tree)), "the kept session's tree waits for it");
	await bed.until("that its subagent is gone", () => { try { process.kill(pid, 0); return false; } catch { return true; } });
});

test("a session that is opened again after the state directory was removed gets its new results", async (t) => {
	const bed = new Bed(t);
	const first = bed.pi();
	await first.does(launch({ name: "a", task: script([{ say: "old" }]) }));
	await first.until("the result", () => first.arrived().length === 1);
	await first.until("that it is stored", () => first.events.at(-1)?.type === "agent_settled");
	assert.equal(await first.quit(), 0);
	bed.stopDaemon();
	rmSync(bed.state, { recursive: true });
	const next = bed.pi(["--session", first.session]);
	await next.does(launch({ name: "a", task: script([{ say: "new" }]) }));
	await next.until("the new result", () => next.arrived().length === 1);
	assert.deepEqual(next.arrived(), [["a", "new"]]);
	await bed.until("that nothing is owed", () => bed.roost("inbox", "--tree", bed.tree()).items.length === 0);
	const records = next.entries().filter((entry) => entry.customType === "subagents:record").flatMap((entry) => entry.data.results.map((one: { finalOutput: string }) => one.finalOutput));
	assert.deepEqual(records, ["old", "new"]);
});

test("a session without subagents takes its tree with it, also when another one follows in the same Pi", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does();
	const tree = bed.tree();
	assert.equal((await pi.ask({ type: "new_session" })).success, true);
	await pi.does(launch({ name: "a", task: script([{ say: "A" }]) }));
	await pi.until("its result", () => pi.arrived().length === 1);
	const open = () => bed.roost("status").trees.filter((one: { closed_at_ms: number | null }) => !one.closed_at_ms).map((one: { tree: string }) => one.tree) as string[];
	assert.equal(open().length, 1);
	assert.notEqual(open()[0], tree);
	const [kept] = open();
	assert.equal((await pi.ask({ type: "new_session" })).success, true);
	await pi.does();
	assert.ok(open().includes(kept as string), "one with subagents waits for its session");
});

test("a second process of a worker gets no word into its conversation, and leaves", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch({ name: "a", task: script([{ say: "one" }]) }));
	await pi.until("its first result", () => pi.arrived().length === 1);
	await pi.does({ call: [["message_subagent", { name: "a", message: `go on\n${script([{ until: bed.file("gate"), say: "two" }])}` }]] });
	await bed.until("its second turn", () => bed.turns(bed.worker("a").worker).length === 2);
	const { pid, worker } = bed.worker("a");
	const file = `${bed.state}/pi/${bed.tree()}/${worker}.jsonl`;
	const before = readFileSync(file, "utf8");
	assert.match(before, /"one"/);
	const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
	const env = Object.fromEntries(variables.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
	const preflight = pathToFileURL(join(dirname(EXTENSION), "preflight.mjs")).href;
	const args = ["--import", preflight, PI_ENTRY, "--mode", "rpc", "-ne", "-e", EXTENSION, "-e", join(HERE, "faux.ts"), "--model", "faux/faux-1"];
	const second = spawnSync(process.execPath, args, { cwd: bed.work, env, encoding: "utf8", timeout: PATIENCE_MS, input: "" });
	assert.equal(second.error, undefined, "it leaves by itself");
	assert.match(second.stderr, /roost-pi: this worker ends: /);
	assert.equal(readFileSync(file, "utf8"), before);
	writeFileSync(bed.file("gate"), "");
	await pi.until("its second result", () => pi.arrived().length === 2);
	assert.deepEqual(pi.arrived(), [["a", "one"], ["a", "two"]]);
	assert.equal(bed.turns(worker).length, 2);
});
