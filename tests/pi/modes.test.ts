/** Results inline, calls that park, ways of delivery, other extensions, and what a task may say. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Bed, EXTENSION, HERE, PI_ENTRY, answerOf, launch, script } from "./bed.ts";

const foreground = (...tasks: unknown[]) => ({ call: [["subagents", { tasks, foreground: true }]] });
const gated = (bed: Bed, name: string) => ({ name, task: script([{ until: bed.file(`gate-${name}`), say: name.toUpperCase() }]) });
const open = (bed: Bed, name: string) => writeFileSync(bed.file(`gate-${name}`), "");

test("results in the foreground come inline and are not announced; so do results that were waited for", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(foreground({ name: "a", task: script([{ say: "A" }]) }, { name: "b", task: script([{ fail: "400: no" }]) }));
	assert.match(answerOf(pi.toolResults("subagents")[0]), /^\[subagent a completed\]\nA\n\n\[subagent b failed: its model's provider failed: 400: no/);
	await pi.does(launch(gated(bed, "c")), { call: [["get_subagent_result", { name: "c" }]] });
	assert.match(answerOf(pi.toolResults("get_subagent_result")[0]), /no result yet: (starting|running)/);
	const reading = pi.does({ call: [["get_subagent_result", { name: "c", wait: true, verbose: true }]] });
	await bed.until("a wait", () => pi.events.filter((event) => event.type === "tool_execution_start").length === 4);
	open(bed, "c");
	await reading;
	assert.match(answerOf(pi.toolResults("get_subagent_result")[1]), /^\[subagent c completed\]\nC\n\n\[worker w\d+, execution x\d+/);
	// Longer than a completion is held back.
	await pi.does(foreground({ name: "d", task: script([{ say: "D" }]) }));
	assert.deepEqual(pi.arrived(), []);
});

test("a wait that is given up is only a wait: the result is still announced", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch(gated(bed, "a")));
	await pi.prompt(script([{ call: [["get_subagent_result", { name: "a", wait: true }]] }, { say: "x" }]));
	await pi.event("the wait", (event) => event.type === "tool_execution_start" && event.toolName === "get_subagent_result");
	await pi.ask({ type: "abort" });
	open(bed, "a");
	await pi.until("the result", () => pi.arrived().length === 1);
	assert.deepEqual(pi.arrived(), [["a", "A"]]);
});

for (const how of ["foreground launch", "waited result"]) {
	test(`at cap 1 a worker parks inside of a ${how}, and its answer arrives when it is woken`, async (t) => {
		const bed = new Bed(t);
		const pi = bed.pi(["--subagent-cap", "1"]);
		const steps = how === "waited result" ? [launch(gated(bed, "child")), { call: [["get_subagent_result", { name: "child", wait: true }]] }] : [foreground(gated(bed, "child"))];
		// Once the call has been given up for parking, the model is not asked before its answer is there.
		await pi.does(launch({ name: "parent", max_subagents_allowed: 1, task: script(steps, [{ say: "P($ANSWERS)" }]) }));
		await bed.until("the child's turn", () => bed.workers().length === 2 && bed.turns(bed.worker("child").worker).length > 0);
		const parent = bed.worker("parent");
		assert.equal(parent.state, "parked");
		assert.equal(bed.turns(parent.worker).length, steps.length, "its model was not asked again");
		assert.equal(existsSync(`/proc/${bed.turns(parent.worker)[0]?.pid}`), false);
		open(bed, "child");
		await pi.until("the answer", () => pi.arrived().length === 1);
		assert.deepEqual(pi.arrived(), [["parent", "P(child=CHILD)"]]);
		const last = bed.turns(parent.worker).at(-1)?.messages.map(([, text]) => text).join("\n") ?? "";
		assert.equal(last.split("[subagent child completed]").length, 2, "once, as the answer to the call");
	});
}

test("follow_up waits for the end of the run, next_turn for the next prompt, passive for a question", async (t) => {
	const bed = new Bed(t);
	const busy = (name: string) => [{ call: [["bash", { command: `touch ${bed.file(name)}-busy; while [ ! -e ${bed.file(name)}-free ]; do sleep 0.05; done` }]] }, { call: [["bash", { command: "true" }]] }];
	for (const mode of ["follow_up", "next_turn", "passive"]) {
		const pi = bed.pi(["--subagent-delivery", mode, "--session", bed.file(`${mode}.jsonl`)]);
		await pi.does(launch(gated(bed, `${mode}-a`)));
		const run = pi.does(...busy(mode));
		await bed.until("a tool that runs", () => existsSync(`${bed.file(mode)}-busy`));
		open(bed, `${mode}-a`);
		const { sessionId } = (await pi.ask({ type: "get_state" })).data;
		const { tree } = bed.roost("status").trees.find((one: { key: string }) => one.key === `pi:${sessionId}`);
		await bed.until("the end of the subagent", () => bed.workers(tree).every((worker) => worker.state === "ended"));
		// Something else that comes after the hold: then a result in the mode steer would be there.
		await new Promise((resolve) => setTimeout(resolve, 400));
		writeFileSync(`${bed.file(mode)}-free`, "");
		await run;
		const at = (fits: (event: any) => boolean) => pi.events.findIndex(fits);
		const result = () => at((event) => event.type === "message_end" && event.message.customType === "subagent_completion");
		if (mode === "follow_up") {
			await pi.until("the result", () => result() >= 0);
			assert.ok(result() > at((event) => event.type === "message_end" && event.message.role === "assistant" && event.message.content[0]?.text?.startsWith("done 2")), "after the last answer of the run");
		} else if (mode === "next_turn") {
			assert.equal(result(), -1, "nothing has started a turn");
			await pi.does();
			assert.ok(result() >= 0);
		} else {
			await pi.does({ call: [["get_subagent_result", { name: "passive-a" }]] });
			assert.equal(result(), -1);
			assert.match(answerOf(pi.toolResults("get_subagent_result")[0]), /PASSIVE-A/);
		}
		await pi.quit();
	}
});

test("other extensions are told what happens, and may ask over the bus", async (t) => {
	const bed = new Bed(t);
	const heard = bed.file("bus.jsonl");
	const pi = bed.pi(["-e", join(HERE, "bus-client.ts")], { BUS_LOG: heard });
	const said = () => (existsSync(heard) ? readFileSync(heard, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as [string, any]) : []);
	const ask = async (verb: string, data: unknown) => {
		const requestId = `r${said().length}-${verb}`;
		await pi.ask({ type: "prompt", message: `/bus ${JSON.stringify(["subagents:rpc:" + verb, { requestId, ...(data as object) }])}` });
		let reply: any;
		await bed.until(`a reply to ${verb}`, () => (reply = said().find(([channel]) => channel === `subagents:rpc:${verb}:reply:${requestId}`)?.[1]) !== undefined);
		return reply;
	};
	await pi.ask({ type: "get_state" });
	const exported = said().find(([channel]) => channel === "exports")?.[1] as string[];
	for (const name of ["default", "SUBAGENT_COMPLETION_TYPE", "isSubagentDetails", "getNestedSubagentResults", "asyncJobId", "subagentExecutionId", "getSubagentsToolDescription", "collectCombinedUsageStatusLine"])
		assert.ok(exported.includes(name), name);
	assert.deepEqual(await ask("ping", {}), { success: true, data: { version: 2 } });
	const spawned = await ask("spawn", { type: "pi", prompt: script([{ until: bed.file("gate-x"), say: "X" }]), options: { name: "x", depth: 9, parentId: "w99" } });
	assert.equal(spawned.success, true, JSON.stringify(spawned));
	assert.equal(bed.worker("x").lead ?? null, null);
	for (const [options, words] of [[{ cwd: "no/where" }, /cwd must be/], [{ model: "no/such" }, /no model is called no\/such/], [{ name: "x" }, /name_taken/]] as const) {
		const refused = await ask("spawn", { prompt: "hi", options });
		assert.equal(refused.success, false);
		assert.match(refused.error, words);
	}
	assert.match((await ask("spawn", { prompt: 5 })).error, /prompt must be a text/);
	assert.deepEqual(await ask("stop", { agentId: "w999" }), { success: false, error: "no subagent of this session with that id is active" });
	open(bed, "x");
	await pi.until("the result", () => pi.arrived().length === 1);
	assert.equal((await ask("stop", { agentId: spawned.data.id })).success, false, "it has ended");
	await bed.until("the events", () => said().some(([channel]) => channel === "subagents:completed"));
	const events = said().filter(([channel]) => /^subagents:(created|started|completed)$/.test(channel));
	assert.deepEqual(events.map(([channel, data]) => [channel, data.id]), ["created", "started", "completed"].map((name) => [`subagents:${name}`, spawned.data.id]));
	assert.ok(events.every(([, data], at) => at === 0 || data.number > (events[at - 1]?.[1].number ?? 0)), "in the order of the stream");
});

test("the cap is shown and set by its command, in both spellings", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	const say = async (command: string) => {
		const from = pi.events.length;
		await pi.ask({ type: "prompt", message: command });
		return (await pi.event("what it says", (event) => event.method === "notify", from)).message;
	};
	assert.match(await say("/subagent:max-concurency"), /At most 8 /);
	assert.match(await say("/subagent:max-concurency 3"), /At most 3 /);
	assert.match(await say("/subagent:max-concurrency 2"), /At most 2 /);
	assert.match(await say("/subagent:max-concurency none"), /whole number/);
	assert.equal(bed.roost("status").trees[0].cap, 2);
	assert.match(await say("/subagents"), /No subagent was started/);
	await pi.does(launch({ name: "a", task: script([{ say: "A" }]) }));
	await pi.until("its result", () => pi.arrived().length === 1);
	assert.match(await say("/subagents"), /^a {2}completed/);
	assert.match(await say("/subagents view a"), /> DO .*\n\nA$/s);
	assert.match(await say("/subagents message a more"), /a goes on with it/);
	await pi.until("its second result", () => pi.arrived().length === 2);
	assert.match(await say("/subagents nonsense"), /\/subagents \[view NAME/);
});

test("a host that draws itself gets the lines as text, when they change", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--subagent-cap", "1"]);
	const widgets = (key: string) => pi.events.filter((event) => event.method === "setWidget" && event.widgetKey === key).map((event) => event.widgetLines);
	await pi.does(launch(gated(bed, "a"), gated(bed, "b")));
	const waiting = ["Waiting for subagents - don't close the session", "Running 1: a · 1 queued"];
	await pi.until("that somebody waits", () => JSON.stringify(widgets("subagents-live").at(-1)) === JSON.stringify(waiting));
	for (const name of ["a", "b"]) open(bed, name);
	await pi.until("the results", () => pi.arrived().length === 2);
	await pi.until("the end of the lines", () => widgets("subagents-live").at(-1) === undefined);
	await pi.until("the usage", () => /^WITH SUBS .*\(2 subagents\)$/.test(widgets("subagents-usage").at(-1)?.[0] ?? ""));
	const shown = widgets("subagents-live").map((lines) => JSON.stringify(lines));
	assert.ok(shown.every((lines, at) => lines !== shown[at - 1]), "nothing is said twice in a row");
});

test("what a Pi may not do its subagents and theirs may not do either", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--tools", "read,subagents"]);
	const bash = (file: string) => ({ call: [["bash", { command: `touch ${bed.file(file)}` }]] });
	const inner = { name: "inner", task: script([bash("inner"), { say: "I" }]) };
	await pi.does(launch({ name: "outer", max_subagents_allowed: 1, task: script([bash("outer"), launch(inner), { say: "O" }], [{ say: "$ANSWERS" }]) }));
	await pi.until("its result", () => pi.arrived().length === 1);
	assert.deepEqual(pi.arrived(), [["outer", "inner=I"]]);
	for (const file of ["outer", "inner"]) assert.equal(existsSync(bed.file(file)), false);
	await pi.does(launch({ tools: ["bash"], task: "x" }));
	assert.match(answerOf(pi.toolResults("subagents").at(-1)), /you do not have the tools bash yourself/);
});

test("a Pi that a worker's command starts is not that worker", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	const command = `${process.execPath} ${PI_ENTRY} -ne -e ${join(HERE, "faux.ts")} -e ${EXTENSION} --model faux/faux-1 --no-session -p 'DO [{"call":[["subagents",{"tasks":[{"task":"x"}]}]]},{"say":"inner"}]' </dev/null; echo rc $?`;
	await pi.does(launch({ name: "a", max_subagents_allowed: 3, task: script([{ call: [["bash", { command }]] }, { say: "outer" }]) }));
	await pi.until("its result", () => pi.arrived().length === 1);
	assert.deepEqual(pi.arrived(), [["a", "outer"]]);
	const tool = bed.turns(bed.worker("a").worker).find((turn) => turn.messages.at(-1)?.[0] === "toolResult" && turn.messages.at(-1)?.[1].includes("rc 0"));
	assert.match(tool?.messages.at(-1)?.[1] ?? "", /^inner\nrc 0/);
	assert.equal(bed.workers().length, 1);
});

test("a task has the thinking level that it says, or its launcher's", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi(["--model", "faux/faux-thinks", "--thinking", "low"]);
	await pi.does(launch({ name: "a", thinking: "high", task: script([{ say: "A" }]) }, { name: "b", task: script([{ say: "B" }]) }));
	await pi.until("the results", () => pi.arrived().length === 2);
	assert.deepEqual(["a", "b"].map((name) => bed.turns(bed.worker(name).worker)[0]?.thinking), ["high", "low"]);
});

test("a call with more tasks than one may have is refused with the number, and starts nothing", async (t) => {
	const bed = new Bed(t);
	const pi = bed.pi();
	await pi.does(launch(...Array.from({ length: 21 }, (_, at) => ({ name: `n${at}`, task: "x" }))));
	const [refused] = pi.toolResults("subagents");
	assert.equal(refused.isError, true);
	assert.match(answerOf(refused), /tasks.*\b20\b/s);
	assert.deepEqual(bed.workers(), []);
});
