/** What happens in a worker's process before Pi does. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";

const PREFLIGHT = new URL("../../../client/pi/preflight.mjs", import.meta.url).href;

function started(t: TestContext, program: string, conversation: string, context?: object) {
	const dir = mkdtempSync(join(tmpdir(), "roost-pi-unit-"));
	t.after(() => rmSync(dir, { recursive: true }));
	mkdirSync(join(dir, "pi/t1"), { recursive: true });
	const session = join(dir, "pi/t1/w1.jsonl");
	writeFileSync(session, conversation);
	writeFileSync(join(dir, "program.mjs"), program);
	if (context) writeFileSync(join(dir, "context"), JSON.stringify(context));
	const env = { PATH: process.env.PATH, ROOST_STATE_DIR: dir, ROOST_TREE: "t1", ROOST_WORKER: "w1", ROOST_EPOCH: "1", SESSION: session, ...(context ? { ROOST_CONTEXT: join(dir, "context") } : {}) };
	const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", PREFLIGHT, join(dir, "program.mjs")], { env, encoding: "utf8", input: "", timeout: 60_000 });
	return { status, stdout, stderr, left: readFileSync(session, "utf8") };
}

test("the torn end of a conversation is cut, and only this process is the worker: a fork of it touches nothing", (t) => {
	const program = `
		import { fork, spawnSync } from "node:child_process";
		import { appendFileSync } from "node:fs";
		const is = Boolean(globalThis[Symbol.for("roost-pi.worker")]);
		if (process.argv[2] === "inner") console.log("inner", is);
		else {
			console.log("outer", is, process.argv.includes("--session"));
			appendFileSync(process.env.SESSION, "being written");
			process.stdout.write(spawnSync(process.execPath, [...process.execArgv, process.argv[1], "inner"], { encoding: "utf8" }).stdout);
			fork(process.argv[1], ["inner"]).on("exit", () => process.exit());
		}`;
	const { status, stdout, stderr, left } = started(t, program, '{"a":1}\n{"b');
	assert.deepEqual([status, stderr], [0, ""]);
	assert.equal(stdout, "outer true true\ninner false\ninner false\n");
	assert.equal(left, '{"a":1}\nbeing written');
});

test("a context of another version, and one whose conversation has changed, are refused before anything runs", (t) => {
	const other = started(t, "console.log(1)", "x\n", { schema: 2, bytes: 0, sha256: "" });
	assert.deepEqual([other.status, other.stdout], [1, ""]);
	assert.match(other.stderr, /is of another version of this extension \(2\)/);
	const changed = started(t, "console.log(1)", "x\n", { schema: 1, bytes: 2, sha256: "0" });
	assert.deepEqual([changed.status, changed.stdout, changed.left], [1, "", "x\n"]);
	assert.match(changed.stderr, /is not the conversation that was saved: its first 2 bytes/);
});
