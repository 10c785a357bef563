/** Usage: the tree's totals equal the sum over all session files, to the token and the nano-dollar; one run over HTTP. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Bed, launch, script } from "./bed.ts";
import { MODEL, serveModel } from "./http.ts";

type Sum = { input: number; output: number; cache_read: number; cache_write: number; cost: number; turns: number; tool_calls: number };

/** What a session file says was used. */
function sumOf(file: string): Sum {
	const sum: Sum = { input: 0, output: 0, cache_read: 0, cache_write: 0, cost: 0, turns: 0, tool_calls: 0 };
	for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
		const entry = JSON.parse(line);
		const usage = entry.type === "message" ? entry.message.usage : entry.usage;
		if (entry.message?.role === "assistant") {
			sum.turns += 1;
			sum.tool_calls += entry.message.content.filter((part: { type: string }) => part.type === "toolCall").length;
		}
		if (!usage) continue;
		sum.input += usage.input;
		sum.output += usage.output;
		sum.cache_read += usage.cacheRead;
		sum.cache_write += usage.cacheWrite;
		sum.cost += Math.round(usage.cost.total * 1e9);
	}
	return sum;
}

const plus = (a: Sum, b: Sum): Sum => Object.fromEntries(Object.keys(a).map((key) => [key, a[key as keyof Sum] + b[key as keyof Sum]])) as Sum;
const counters = ({ input, output, cache_read, cache_write, cost, turns, tool_calls }: Sum): Sum => ({ input, output, cache_read, cache_write, cost, turns, tool_calls });

test("the totals of a tree that parked, resumed and failed equal the sum over its session files", async (t) => {
	const bed = new Bed(t, { PI_SUBAGENTS_EXTENSIONS: "" });
	await serveModel(t, bed);
	const pi = bed.pi(["--subagent-cap", "1", "--model", MODEL]);
	const leaf = { name: "leaf", task: script([{ call: [["bash", { command: "echo 1" }], ["bash", { command: "echo 2" }]] }, { say: "L" }]) };
	const middle = { name: "middle", max_subagents_allowed: 1, task: script([launch(leaf), { say: "I wait" }], [{ say: "M($ANSWERS)" }]) };
	const top = { name: "top", max_subagents_allowed: 2, task: script([launch(middle), { say: "I wait" }], [{ say: "T($ANSWERS)" }]) };
	await pi.does(launch(top, { name: "failed", task: script([{ call: [["bash", { command: "echo 3" }]] }, { fail: "no such thing" }]) }));
	await pi.until("both ends", () => pi.arrived().length === 2);
	await pi.does({ call: [["message_subagent", { name: "top", message: `again\n${script([{ say: "T2" }])}` }]] });
	await pi.until("the third end", () => pi.arrived().length === 3);
	await pi.until("an idle root", () => pi.events.at(-1)?.type === "agent_settled" || pi.events.at(-1)?.method === "setWidget");
	assert.deepEqual(pi.arrived().map(([, answer]) => answer).filter(Boolean).sort(), ["T(middle=M(leaf=L))", "T2"]);

	const folder = `${bed.state}/pi/${bed.tree()}`;
	const workers = new Map(bed.workers().map((worker) => [worker.worker, worker]));
	assert.deepEqual(readdirSync(folder).sort(), [...workers.keys()].map((worker) => `${worker}.jsonl`).sort());
	const reply = bed.roost("usage", "--tree", bed.tree(), "--each");
	let all: Sum | undefined;
	for (const worker of reply.workers) {
		const own = sumOf(`${folder}/${worker.worker}.jsonl`);
		assert.deepEqual(counters(worker.own), own, worker.name);
		assert.ok(own.cost > 0 && own.cache_read > 0, "there was something to count");
		all = all ? plus(all, own) : own;
	}
	assert.deepEqual(counters(reply.totals.total), all);
	assert.equal(reply.totals.workers, 4);
	assert.ok((workers.get(reply.workers[0].worker)?.epoch ?? 0) > 2, "the first one had several processes");

	// The line for a person is that and the root's own.
	const total = plus(all as Sum, sumOf(pi.session));
	const money = `$${(total.cost / 1e9).toFixed(3)}`;
	await pi.until("the usage line", () => pi.events.some((event) => event.widgetKey === "subagents-usage" && event.widgetLines[0].includes(`${money} (4 subagents)`)));
	// What the last completion says of the tree below it is the same again, each execution once.
	const last = pi.messages("subagent_completion").at(-1).details.results[0];
	const below = reply.workers.filter((worker: { name: string }) => worker.name !== "failed").map((worker: { own: Sum }) => worker.own).reduce(plus);
	assert.deepEqual([last.subtree.input, Math.round(last.subtree.cost * 1e9), last.subtreeWorkers], [below.input, below.cost, 3]);
	assert.equal(await pi.quit(), 0);
});
