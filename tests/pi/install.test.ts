/** The package as people get it: packed, installed by `pi install`, found by itself, and its workers load it from there, once. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Bed, HERE, PATIENCE_MS, PI_ENTRY, Pi, launch, script } from "./bed.ts";

test("the packed package is installed by pi install, loads itself, and runs a tree", async (t) => {
	const bed = new Bed(t);
	const folder = join(HERE, "../../client/pi");
	const packed = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", bed.dir, "--loglevel=error"], { cwd: folder, encoding: "utf8", timeout: PATIENCE_MS }));
	const [{ filename, files }] = packed as [{ filename: string; files: { path: string }[] }];
	const shipped = files.map((file) => file.path).sort();
	const sources = readdirSync(folder).filter((name) => /\.(ts|mjs|md)$/.test(name) || name === "package.json").sort();
	assert.deepEqual(shipped, sources, "all of it, and nothing else");
	const env = { ...bed.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}`, PI_OFFLINE: "" };
	execFileSync(process.execPath, [PI_ENTRY, "install", `npm:roost-pi@file:${bed.file(filename)}`], { cwd: bed.work, env, encoding: "utf8", timeout: PATIENCE_MS, stdio: "pipe" });
	const installed = join(bed.agentDir, "npm/node_modules/roost-pi");
	assert.ok(existsSync(join(installed, "index.ts")));
	// Nothing names the extension here: Pi finds it.
	const session = bed.file("installed.jsonl");
	const pi = new Pi(bed, ["--mode", "rpc", "-e", join(HERE, "faux.ts"), "--model", "faux/faux-1", "--session", session], bed.env);
	bed.ends.push(() => pi.process.kill("SIGKILL"));
	const leaf = { name: "leaf", task: script([{ say: "L" }]) };
	await pi.does(launch({ name: "top", max_subagents_allowed: 1, task: script([launch(leaf), { say: "I wait" }], [{ say: "T($ANSWERS)" }]) }));
	await pi.until("the result", () => pi.arrived().length === 1);
	assert.deepEqual(pi.arrived(), [["top", "T(leaf=L)"]]);
	// The worker said what it was started with: the installed package and no other.
	const out = readFileSync(`${bed.state}/executions/x1-1.out`, "utf8");
	assert.ok(!out.includes("extension_error"), out.slice(0, 500));
	assert.equal(await pi.quit(), 0);
});
