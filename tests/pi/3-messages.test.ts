/** Messages to a running, an ended and a parked subagent, words to the lead, who may not be spoken to, and results that become one message. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, answerOf, launch, script } from "./bed.ts";

const message = (name: string, text: string) => ({ call: [["message_subagent", { name, message: text }]] });

test("a running subagent reads a message during its work, an ended one goes on with it", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const pi = bed.pi();
	const running = { name: "running", task: script([{ until: gate, say: "first" }], [{ say: "second, after $TURNS" }]) };
	const ended = { name: "ended", task: script([{ say: "one" }], [{ say: "two, after $TURNS" }]) };
	await pi.does(launch(running, ended));
	await pi.until("the end of one", () => pi.arrived().length === 1);
	await bed.until("the other's turn", () => bed.turns(bed.worker("running").worker).length > 0);
	await pi.does(message("running", "only finches"), message("ended", "and sparrows"));
	const [steered, resumed] = pi.toolResults("message_subagent");
	assert.match(answerOf(steered), /reads it during its work/);
	assert.match(answerOf(resumed), /goes on from its saved conversation/);
	await pi.until("the resumed one's answer", () => pi.arrived().length === 2);
	writeFileSync(gate, "");
	await pi.until("both answers", () => pi.arrived().length === 3);
	assert.deepEqual(pi.arrived(), [["ended", "one"], ["ended", "two, after 2"], ["running", "second, after 2"]]);
	const executions = pi.messages("subagent_completion").flatMap((one) => one.details.results.map((result: { execution: string }) => result.execution));
	assert.equal(new Set(executions).size, 3, "a resume is an execution of its own");
	const shown = bed.turns(bed.worker("running").worker).at(-1)?.messages.at(-1)?.[1];
	assert.equal(shown, "[message from your lead]\nonly finches");
	assert.equal(bed.turns(bed.worker("ended").worker).at(-1)?.messages.filter(([role]) => role === "assistant").length, 1, "it has its conversation");
});

test("a parked subagent takes no message and is no lead to talk to; nobody speaks to another's child", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const child = { name: "child", task: script([{ call: [["message_lead_agent", { message: "are you there" }]] }, { until: gate, say: "C" }]) };
	const parent = { name: "parent", max_subagents_allowed: 1, task: script([launch(child), { say: "I wait" }], [{ say: "P($ANSWERS)" }]) };
	const pi = bed.pi(["--subagent-cap", "1"]);
	await pi.does(launch(parent));
	await bed.until("a parked parent", () => bed.workers().length === 2 && bed.worker("parent").state === "parked" && bed.turns(bed.worker("child").worker).length === 2);
	const refused = bed.turns(bed.worker("child").worker).at(-1)?.messages.at(-1)?.[1] ?? "";
	assert.match(refused, /lead_parked/);
	await pi.does(message("parent", "hello"), message("child", "hello"), message("nobody", "hello"), { call: [["stop_subagent", { name: ["parent", "child"] }]] });
	const answers = pi.toolResults("message_subagent");
	assert.deepEqual(answers.map((answer) => answer.isError), [true, true, true]);
	assert.match(answerOf(answers[0]), /^parked: /);
	assert.match(answerOf(answers[1]), /^unknown_worker: /);
	assert.equal(answerOf(answers[1]).replace("child", "nobody"), answerOf(answers[2]), "another's child is as unknown as no one");
	assert.match(answerOf(pi.toolResults("stop_subagent")[0]), /^unknown_worker: /);
	assert.equal(bed.worker("parent").state, "parked", "one bad name, and nothing is touched");
	writeFileSync(gate, "");
	await pi.until("the answer", () => pi.arrived().length > 0);
	assert.deepEqual(pi.arrived(), [["parent", "P(child=C)"]]);
});

test("words to the lead arrive before the result and are none; siblings cannot speak to each other", async (t) => {
	const bed = new Bed(t);
	const gate = bed.file("gate");
	const talker = {
		name: "talker", max_subagents_allowed: 1,
		task: script([{ call: [["message_lead_agent", { message: "half way" }], ["message_subagent", { name: "other", message: "psst" }], ["stop_subagent", { name: "other" }]] }, { say: "T" }]),
	};
	const pi = bed.pi();
	await pi.does(launch(talker, { name: "other", task: script([{ until: gate, say: "O" }]) }));
	await pi.until("the result", () => pi.arrived().length === 1);
	const texts = pi.messages("subagent_message").map((one) => one.content);
	assert.deepEqual(texts, ["[message from subagent talker; not its result]\nhalf way"]);
	const order = pi.events.filter((event) => event.type === "message_end" && event.message.role === "custom").map((event) => event.message.customType);
	assert.deepEqual(order, ["subagent_message", "subagent_completion"]);
	const seen = bed.turns(bed.worker("talker").worker).at(-1)?.messages.filter(([role]) => role === "toolResult").map(([, text]) => text) ?? [];
	assert.match(seen[0] ?? "", /^Sent/);
	assert.match(seen[1] ?? "", /unknown_worker/);
	assert.match(seen[2] ?? "", /unknown_worker/);
	assert.equal(bed.worker("other").state, "running");
});

test("tools are shown where they can work, and nowhere else", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--subagent-budget", "2"]);
	await pi.does({ call: [["subagents", { tasks: [{ name: "leaf", task: script([{ call: [["subagents", { tasks: [{ task: "x" }] }], ["message_lead_agent", { message: "hi" }]] }, { say: "L" }]) }] }], ["message_lead_agent", { message: "up" }]] });
	const [lead] = pi.toolResults("message_lead_agent");
	assert.match(answerOf(lead), /not found/, "the root has no lead");
	await pi.until("the leaf", () => pi.arrived().length === 1);
	const leaf = bed.turns(bed.worker("leaf").worker).at(-1)?.messages.filter(([role]) => role === "toolResult").map(([, text]) => text) ?? [];
	assert.match(leaf[0] ?? "", /Tool subagents not found/, "without an allowance there are no subagents");
	assert.match(leaf[1] ?? "", /Sent/);
	await pi.does(launch({ name: "two", task: script([{ say: "2" }]) }));
	await pi.until("the second", () => pi.arrived().length === 2);
	await pi.does(launch({ name: "three", task: script([{ say: "3" }]) }), { call: [["get_subagent_result", { name: "two" }]] });
	assert.match(answerOf(pi.toolResults("subagents").at(-1)), /Tool subagents not found/, "the budget is used up");
	assert.match(answerOf(pi.toolResults("get_subagent_result")[0]), /completed\]\n2/, "and children can still be read");
});

test("results that arrive during a tool's work are one message and cost one turn, and each can be told apart", async (t) => {
	const bed = new Bed(t);
	const gated = (name: string) => ({ name, task: script([{ until: bed.file("gate"), say: name.toUpperCase() }]) });
	const pi = bed.pi();
	await pi.does(launch(gated("a"), gated("b")));
	const run = pi.does({ call: [["bash", { command: `while [ ! -e ${bed.file("free")} ]; do sleep 0.05; done` }]] });
	writeFileSync(bed.file("gate"), "");
	await bed.until("the ends of both", () => bed.workers().every((worker) => worker.state === "ended"));
	// Longer than a result is held back.
	await new Promise((resolve) => setTimeout(resolve, 1_000));
	const before = bed.turns(undefined).length;
	writeFileSync(bed.file("free"), "");
	await run;
	const messages = pi.messages("subagent_completion");
	assert.equal(messages.length, 1);
	const [{ content, details }] = messages;
	assert.deepEqual(content.split("\n\n").sort(), ["[subagent a completed]\nA", "[subagent b completed]\nB"]);
	const told = details.results.map((result: { name: string; job: string; taskIndex: number; execution: string }) => [result.name, result.job, result.taskIndex, result.execution]).sort();
	const workers = ["a", "b"].map((name, at) => [name, bed.worker(name).job, at, bed.worker(name).execution]);
	assert.deepEqual(told, workers);
	assert.deepEqual([details.mode, details.asyncJobId, details.asyncTaskIndex], ["parallel", bed.worker("a").job, undefined]);
	assert.equal(bed.turns(undefined).length, before + 1);
	await bed.until("that nothing is owed", () => bed.roost("inbox", "--tree", bed.tree()).items.length === 0);
});

test("a parked parent is woken by the results of all of its subagents, as one prompt", async (t) => {
	const bed = new Bed(t);
	const child = (name: string) => ({ name, task: script([{ say: name.toUpperCase() }]) });
	const pi = bed.pi(["--subagent-cap", "1"]);
	await pi.does(launch({ name: "parent", max_subagents_allowed: 2, task: script([launch(child("a"), child("b")), { say: "I wait" }], [{ say: "P($ANSWERS)" }]) }));
	await pi.until("the answer", () => pi.arrived().length > 0);
	assert.deepEqual(pi.arrived(), [["parent", "P(a=A,b=B)"]]);
	const parent = bed.worker("parent");
	const turns = bed.turns(parent.worker);
	assert.deepEqual([parent.epoch, turns.length], [2, 3]);
	assert.equal(turns.at(-1)?.messages.at(-1)?.[1], "[subagent a completed]\nA\n\n[subagent b completed]\nB");
});
