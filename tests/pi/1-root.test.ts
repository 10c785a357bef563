/** Five children at cap 2: all of them answer, each result arrives once, and the idle root is woken by them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Bed, launch, script } from "./bed.ts";

test("five children at cap 2: completions once each, the idle root woken", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--subagent-cap", "2"]);
	const names = ["a", "b", "c", "d", "e"];
	const tasks = names.map((name) => ({ name, task: script([{ say: `I am ${name}` }]) }));
	await pi.prompt(script([launch(...tasks), { say: "launched" }]));
	await pi.until("all results", () => pi.arrived().length >= 5);
	await pi.until("an idle root", () => bed.turns(undefined).length > 0 && pi.events.at(-1)?.type === "agent_settled");
	assert.deepEqual(pi.arrived().sort(), names.map((name) => [name, `I am ${name}`]));
	assert.ok(pi.settled() >= 2, "the root had settled, and was woken");
	const [receipt] = pi.toolResults("subagents");
	assert.deepEqual(receipt.result.details.results.map((result: { name: string; exitCode: number }) => [result.name, result.exitCode]), names.map((name) => [name, -1]));
	assert.match(receipt.result.content[0].text, /queued at place 1/);
	assert.ok(bed.workers().every((worker) => worker.state === "ended" && worker.outcome.status === "completed"));
	// Never more than two at a time, in the order of the launch.
	let live = 0;
	const started: string[] = [];
	for (const event of bed.events()) {
		if (event.event === "started") started.push(event.name);
		live += event.event === "started" ? 1 : event.event === "ended" ? -1 : 0;
		assert.ok(live <= 2, JSON.stringify(event));
	}
	assert.deepEqual(started, names);
	// The model was shown each result once.
	const last = bed.turns(undefined).at(-1)?.messages.filter(([role]) => role === "user").map(([, text]) => text).join("\n") ?? "";
	for (const name of names) assert.equal(last.split(`[subagent ${name} completed]`).length, 2, name);
	assert.equal(await pi.quit(), 0);
});
