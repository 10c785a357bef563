/** How a root starts and ends where nobody types, what it finds the daemon by, and what is told when it cannot work. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Bed, PI_PACKAGE, answerOf, launch, roostBin, script } from "./bed.ts";

const gated = (bed: Bed, name: string) => ({ name, task: script([{ until: bed.file(`gate-${name}`), say: name.toUpperCase() }]) });

test("print mode waits for what it has launched, and answers with it", async (t) => {
	const bed = new Bed(t);
	const tasks = ["a", "b", "c"].map((name) => ({ name, task: script([{ say: name.toUpperCase() }]) }));
	const { code, stdout } = await bed.once(["--session", bed.file("print.jsonl"), "-p", script([launch(...tasks), { say: "launched" }], [{ say: "all: $ANSWERS" }])]);
	assert.deepEqual([code, stdout.trim()], [0, "all: a=A,b=B,c=C"]);
});

test("print mode ends when its tree is closed elsewhere", async (t) => {
	const bed = new Bed(t);
	const run = bed.once(["--session", bed.file("print.jsonl"), "-p", script([launch(gated(bed, "a")), { say: "launched" }])]);
	await bed.until("the subagent's turn", () => existsSync(bed.log) && readFileSync(bed.log, "utf8").includes('"worker":"w'));
	bed.roost("close", "--tree", bed.tree(), "--now");
	const { code, stdout } = await run;
	assert.deepEqual([code, stdout.trim()], [0, "launched"]);
});

test("JSON mode is a root like any other: its events have the results, and it ends after them", async (t) => {
	const bed = new Bed(t);
	const task = (name: string) => ({ name, task: script([{ say: name.toUpperCase() }]) });
	const { code, stdout, stderr } = await bed.once(["--session", bed.file("json.jsonl"), "--mode", "json", script([launch(task("a"), task("b")), { say: "launched" }], [{ say: "all: $ANSWERS" }])]);
	assert.equal(code, 0, stderr);
	const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
	const ends = events.filter((event) => event.type === "message_end").map((event) => event.message);
	const results = ends.filter((message) => message.customType === "subagent_completion").flatMap((message) => message.details.results);
	assert.deepEqual(results.map((result) => [result.name, result.finalOutput]).sort(), [["a", "A"], ["b", "B"]]);
	assert.equal(ends.findLast((message) => message.role === "assistant").content[0].text, "all: a=A,b=B");
	assert.equal(events.at(-1).type, "agent_settled");
});

test("the command roost is found on PATH", async (t) => {
	const bed = new Bed(t, { ROOST_BIN: "" });
	const run = await bed.once(["--session", bed.file("path.jsonl"), "-p", script([launch({ name: "a", task: script([{ say: "A" }]) }), { say: "launched" }], [{ say: "$ANSWERS" }])], { PATH: `/no/such:${dirname(roostBin())}:${process.env.PATH}` });
	assert.deepEqual([run.code, run.stdout.trim(), run.stderr], [0, "a=A", ""]);
});

test("without the command roost it says in one line what to do, and Pi works on", async (t) => {
	const bed = new Bed(t);
	const missing = await bed.once(["--session", bed.file("m.jsonl"), "-p", script([{ say: "fine" }])], { ROOST_BIN: "", PATH: "/usr/bin:/bin" });
	assert.deepEqual([missing.code, missing.stdout.trim()], [0, "fine"]);
	assert.equal(missing.stderr.split("\n").filter((line) => line.includes("Subagents are off")).length, 1);
	assert.match(missing.stderr, /the command `roost` is not on PATH; install Roost/);
	const broken = await bed.once(["--session", bed.file("b.jsonl"), "-p", script([{ say: "fine" }])], { ROOST_BIN: "/no/such/roost" });
	assert.match(broken.stderr, /ROOST_BIN is \/no\/such\/roost, which is no program/);
	const pi = bed.pi([], { ROOST_BIN: "/bin/false" });
	await pi.event("the line", (event) => event.method === "notify" && /Subagents are off: `\/bin\/false daemon start --json` failed/.test(event.message));
	await pi.does({ call: [["subagents", { tasks: [{ task: "x" }] }]] });
	assert.match(answerOf(pi.toolResults("subagents")[0]), /not found/, "there is no such tool");
});

test("an old Node and an old Pi are told in one line, and Pi works on without subagents", async (t) => {
	const bed = new Bed(t);
	const old = bed.file("old-pi");
	mkdirSync(old);
	for (const name of readdirSync(PI_PACKAGE)) if (name !== "package.json") symlinkSync(join(PI_PACKAGE, name), join(old, name));
	writeFileSync(join(old, "package.json"), JSON.stringify({ ...JSON.parse(readFileSync(join(PI_PACKAGE, "package.json"), "utf8")), version: "0.84.1" }));
	const oldNode = "--import=data:text/javascript,Object.defineProperty(process.versions,'node',{value:'22.18.0'})";
	for (const [env, line] of [
		[{ NODE_OPTIONS: oldNode }, "Subagents are off: Node 22.18.0 is too old; run Pi with Node 22.19 or newer"],
		[{ PI_PACKAGE_DIR: old }, "Subagents are off: Pi 0.84.1 is too old; update it to 0.84.2 or newer"],
	] as const) {
		const { code, stdout, stderr } = await bed.once(["--no-session", "-p", script([{ call: [["subagents", { tasks: [{ task: "x" }] }]] }, { say: "fine" }])], env);
		assert.deepEqual([code, stdout.trim()], [0, "fine"], stderr);
		assert.deepEqual(stderr.split("\n").filter((said) => said.includes("Subagents")), [line]);
	}
	assert.equal(existsSync(bed.state), false, "no daemon was started");
});

test("a session that was once opened without a daemon has its tools again when there is one", async (t) => {
	const bed = new Bed(t);
	const without = bed.pi([], { ROOST_BIN: "/bin/false" });
	await without.does();
	assert.equal(await without.quit(), 0);
	const pi = bed.pi(["--session", without.session]);
	await pi.does(launch({ name: "a", task: script([{ say: "A" }]) }));
	await pi.until("the result", () => pi.arrived().length === 1);
});
