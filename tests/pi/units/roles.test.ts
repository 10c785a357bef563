/** A root and a worker at their edges: a start that is given up, an end that cannot be told. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { TestContext } from "node:test";
import type { CompactDetails } from "../../../client/pi/contracts.ts";
import type { Patience } from "../../../client/pi/connection.ts";
import { Root } from "../../../client/pi/root.ts";
import { Worker } from "../../../client/pi/worker.ts";
import { WELCOME, daemon } from "./daemon.ts";
import { FakePi, completion, later } from "./fake.ts";
import type { Handed } from "./fake.ts";

const ENV = { ...process.env };

function setEnv(t: TestContext, env: Record<string, string>): void {
	for (const [name, value] of Object.entries(env)) {
		process.env[name] = value;
		t.after(() => (ENV[name] === undefined ? delete process.env[name] : (process.env[name] = ENV[name])));
	}
}

/** What a worker says on its standard error when its run has ended, and how it leaves. */
async function settled(t: TestContext, session: string, answer: (params: Record<string, unknown>) => object): Promise<{ said: string; failed: boolean }> {
	const { path } = await daemon(t, (call, _socket, say) => {
		if (call.id === 0) return say({ id: 0, result: { protocol: 1, daemon: "x", role: "worker" } });
		say({ id: call.id, ...(call.method === "settle" ? answer(call.params) : { result: {} }) });
	});
	setEnv(t, { ROOST_SOCKET: path, ROOST_TREE: "t1", ROOST_WORKER: "w1", ROOST_TOKEN: "k", ROOST_EPOCH: "1" });
	const said = t.mock.method(console, "error", () => {});
	const pi = new FakePi();
	const left = new Promise<boolean>((resolve) => {
		const worker = new Worker(pi.api, { session, leave: (isFailure = false) => resolve(isFailure) });
		t.after(() => worker.end());
		worker.listen();
		worker.begin(pi.ctx);
	});
	pi.handlers.agent_settled?.({}, pi.ctx);
	const failed = await left;
	return { said: said.mock.calls.map((call) => call.arguments.join(" ")).join("\n"), failed };
}

const refused = (kind: string) => () => ({ error: { code: -32000, message: "no", data: { kind } } });

test("a worker whose end is refused, or cannot be saved, says so and leaves as a failure", async (t) => {
	assert.deepEqual(await settled(t, "/no/such", refused("no_space")), { said: "roost-pi: this worker cannot settle: no", failed: true });
	const unsaved = await settled(t, "/", () => ({ result: { next: "exit" } }));
	assert.match(unsaved.said, /^roost-pi: this worker cannot settle: EISDIR/);
	assert.equal(unsaved.failed, true);
});

test("a worker that was parked or ended meanwhile just leaves", async (t) => {
	for (const kind of ["parked", "stale_epoch"]) assert.deepEqual(await settled(t, "/no/such", refused(kind)), { said: "", failed: false });
});

/** A worker that was woken in a call: its daemon, which answers the call when it is told to, and its Pi. */
async function wokenInCall(t: TestContext, pi: FakePi, isAnswered: boolean) {
	const session = { calls: [{ method: "result", params: { name: "a", wait: true, request_id: "r1" } }] };
	const heard = new Map<string, () => void>();
	const hears = (method: string) => new Promise<void>((resolve) => heard.set(method, resolve));
	let push = (_notice: object): void => {};
	const { path, calls } = await daemon(t, (call, _socket, say, connections) => {
		if (connections === 1) push = say;
		if (call.id === 0) return say({ id: 0, result: { protocol: 1, daemon: "x", role: "worker", worker: { name: "w", wakes: true } } });
		heard.get(call.method)?.();
		if (call.method !== "result" || isAnswered) say({ id: call.id, result: call.method === "result" ? { ended: completion(0, "x1") } : { next: "exit", workers: [] } });
	});
	const context = join(dirname(path), "context");
	writeFileSync(context, JSON.stringify(session));
	setEnv(t, { ROOST_SOCKET: path, ROOST_TREE: "t1", ROOST_WORKER: "w1", ROOST_TOKEN: "k", ROOST_EPOCH: "1", ROOST_CONTEXT: context });
	const left = new Promise<void>((resolve) => {
		const worker = new Worker(pi.api, { session: "/no/such", leave: () => resolve() });
		t.after(() => worker.end());
		worker.listen();
		worker.begin(pi.ctx);
	});
	return { calls, left, hears, push: (notice: object) => push(notice) };
}

test("the answer of a call in which a worker was put away has a mark, keeps it from parking, and is not asked for again once it is there", { timeout: 60_000 }, async (t) => {
	const pi = new FakePi();
	const handed = new Promise<void>((resolve) => (pi.onHanded = resolve));
	const { calls, hears, push } = await wokenInCall(t, pi, true);
	await handed;
	const [answer] = pi.handed as [Handed];
	assert.match(answer.content, /^\[the answer to the call in which you were put away\]\n\[subagent a completed\]\nR/);
	assert.deepEqual(answer.details.roost.keys, ["t1/call:r1", "t1/x1"]);
	const declined = hears("park_decline");
	push({ method: "park", params: {} });
	await declined;
	assert.ok(calls.every(({ method }) => method !== "park_ready"));
	// It entered, and the process was killed before anything was said of it.
	const next = new FakePi();
	next.entries.push({ type: "custom_message", details: answer.details });
	const again = await wokenInCall(t, next, true);
	await again.hears("report");
	next.handlers.agent_settled?.({}, next.ctx);
	await again.left;
	assert.deepEqual(next.handed, []);
	assert.ok(again.calls.every(({ method }) => method !== "result"));
});

test("a worker does not settle between the answer of its call and the turn that reads it", { timeout: 60_000 }, async (t) => {
	const pi = new FakePi();
	const handed = new Promise<void>((resolve) => (pi.onHanded = resolve));
	const { calls, left } = await wokenInCall(t, pi, true);
	await handed;
	// Pi was busy with something else and has dropped it.
	pi.handlers.agent_settled?.({}, pi.ctx);
	await later();
	assert.ok(calls.every(({ method }) => method !== "settle"));
	pi.handlers.agent_start?.({}, pi.ctx);
	pi.handlers.turn_end?.({ message: {}, toolResults: [] }, pi.ctx);
	assert.equal(pi.handed.length, 2);
	pi.handlers.message_end?.({ message: { role: "custom", details: pi.handed[1]?.details } }, pi.ctx);
	pi.handlers.agent_end?.({}, pi.ctx);
	pi.handlers.agent_settled?.({}, pi.ctx);
	await left;
	assert.equal(calls.filter(({ method }) => method === "settle").length, 1);
});

function rootOf(t: TestContext, pi: FakePi, path: string, patience?: Patience) {
	const troubles: string[] = [];
	const root = new Root(pi.api, { settings: () => ({}), onChange: () => {}, onEvent: () => {}, onTrouble: (line) => void troubles.push(line), ...(patience ? { patience } : {}) });
	// Before the variables are what they were: it would start a daemon that is real.
	t.after(() => root.end(false));
	const program = join(dirname(path), "roost");
	writeFileSync(program, `#!/bin/sh\necho '${JSON.stringify({ socket: path, state_dir: dirname(path) })}'\n`, { mode: 0o755 });
	setEnv(t, { ROOST_BIN: program });
	return { root, troubles };
}

test("a session that ends while its tree is being opened is over; until then it shows no tools", { timeout: 60_000 }, async (t) => {
	const { path } = await daemon(t, (call, _socket, say) => void (call.id === 0 && say(WELCOME)));
	const pi = new FakePi();
	const { root, troubles } = rootOf(t, pi, path);
	const begun = root.begin(pi.ctx);
	assert.deepEqual(pi.tools, ["read"]);
	await root.end(true);
	await begun;
	assert.deepEqual(troubles, []);
	await assert.rejects(root.call("cap", {}), /there is no connection/);
});

test("of a tree that was closed elsewhere nothing is waited for, and no tool is shown", { timeout: 60_000 }, async (t) => {
	const answers: Record<string, unknown> = {
		open: { tree: "t1", token: "k" }, watch: {}, events: { tree: "t1", events: [], next: 1, end: 1 }, usage: { workers: [], totals: {} },
		status: { trees: [{ tree: "t1", budget_remaining: 5, cap: 2 }], workers: [{ name: "a", worker: "w1", execution: "x1", state: "running" }] },
	};
	let isClosed = false;
	const { path } = await daemon(t, (call, socket, say) => {
		if (call.id === 0) return say(isClosed ? { id: 0, error: { code: -32000, message: "it is closed", data: { kind: "tree_closed" } } } : WELCOME);
		if (call.method !== "pause") return say({ id: call.id, result: answers[call.method] });
		isClosed = true;
		socket.destroy();
	});
	const pi = new FakePi();
	const { root, troubles } = rootOf(t, pi, path);
	await root.begin(pi.ctx);
	assert.equal(root.isExpecting(), true);
	assert.ok(pi.tools.includes("subagents"));
	const arrival = root.deliveries.arrives(() => root.isExpecting());
	await assert.rejects(root.call("pause", { paused: true }), /it is closed/);
	await arrival;
	assert.deepEqual(pi.tools, ["read"]);
	assert.deepEqual(troubles, ["Subagents are off: it is closed"]);
});

const RUNNING: Record<string, unknown> = {
	open: { tree: "t1", token: "k" }, watch: {}, events: { tree: "t1", events: [], next: 1, end: 1 }, usage: { workers: [], totals: {} },
	status: { trees: [{ tree: "t1", budget_remaining: 5, cap: 2 }], workers: [{ name: "a", worker: "w1", execution: "x1", state: "running" }] },
};

test("what was stopped while the session was closed has a record once it is opened, and only one", { timeout: 60_000 }, async (t) => {
	const workers = [
		{ name: "a", worker: "w1", execution: "x1", state: "ended", outcome: { status: "stopped" } },
		{ name: "b", worker: "w2", execution: "x2", state: "ended", outcome: { status: "completed" } },
		{ name: "c", worker: "w3", lead: "w2", execution: "x3", state: "ended", outcome: { status: "stopped" } },
	];
	const pi = new FakePi();
	for (const times of [1, 0]) {
		const { path, calls } = await daemon(t, (call, _socket, say) => {
			const result = call.method === "status" ? { trees: [], workers } : call.method === "result" ? { ended: { ...completion(0, "x1"), outcome: { status: "stopped" } } } : RUNNING[call.method];
			say(call.id === 0 ? WELCOME : { id: call.id, result });
		});
		const { root } = rootOf(t, pi, path);
		await root.begin(pi.ctx);
		await root.call("status", {});
		await later();
		assert.deepEqual(pi.entries.map(({ data }) => (data as CompactDetails).results.map(({ execution }) => execution)), [["x1"]]);
		assert.equal(calls.filter(({ method }) => method === "result").length, times);
	}
});

test("a worker that goes on without children is not shown the tools for them", { timeout: 60_000 }, async (t) => {
	const pi = new FakePi();
	const { path } = await daemon(t, (call, _socket, say) => {
		const result = call.id === 0 ? { protocol: 1, daemon: "x", role: "worker", worker: { name: "w", wakes: true } }
			: call.method === "status" ? { trees: [], workers: [{ name: "w", worker: "w1", budget_remaining: 0 }, { name: "other", worker: "w2", lead: "w9" }] } : {};
		say({ id: call.id, result });
	});
	setEnv(t, { ROOST_SOCKET: path, ROOST_TREE: "t1", ROOST_WORKER: "w1", ROOST_TOKEN: "k", ROOST_EPOCH: "1", ROOST_CONTEXT: "" });
	const worker = new Worker(pi.api, { session: "/no/such", leave: () => {} });
	t.after(() => worker.end());
	worker.begin(pi.ctx);
	await worker.call("status", { name: "w" });
	await later();
	assert.deepEqual(pi.tools, ["read", "message_lead_agent"]);
});

test("a broker that says nothing more after it has opened the tree does not hold up the session", { timeout: 60_000 }, async (t) => {
	const { path } = await daemon(t, (call, _socket, say, connections) => {
		if (connections === 1) say(call.id === 0 ? WELCOME : { id: call.id, result: RUNNING[call.method] });
	});
	const pi = new FakePi();
	const { root, troubles } = rootOf(t, pi, path, { answerMs: 50, backMs: 60_000 });
	await root.begin(pi.ctx);
	assert.deepEqual(troubles, ["Subagents are off: hello: no answer from roostd within 0.05 s"]);
	assert.deepEqual(pi.tools, ["read"]);
});

test("of a daemon that cannot be started again nothing is waited for", { timeout: 60_000 }, async (t) => {
	const sockets = new Set<Socket>();
	let isGone = false;
	let asked = () => {};
	const isAsked = new Promise<void>((resolve) => (asked = resolve));
	const { path } = await daemon(t, (call, socket, say) => {
		if (isGone) return void socket.destroy();
		sockets.add(socket);
		if (call.method === "result") return asked();
		say(call.id === 0 ? WELCOME : { id: call.id, result: RUNNING[call.method] });
	});
	const pi = new FakePi();
	const { root, troubles } = rootOf(t, pi, path, { answerMs: 60_000, backMs: 50 });
	await root.begin(pi.ctx);
	assert.equal(root.isExpecting(), true);
	const arrival = root.deliveries.arrives(() => root.isExpecting());
	const waited = assert.rejects(root.wait("result", { name: "a", wait: true }, undefined), /roostd is away and has not come back within 0\.05 s/);
	await isAsked;
	isGone = true;
	setEnv(t, { ROOST_BIN: "/bin/false" });
	for (const socket of sockets) socket.destroy();
	await arrival;
	await waited;
	assert.deepEqual(troubles, ["roostd is away and has not come back within 0.05 s"]);
});

test("a reload finds the tools that are allowed, whatever was shown", async (t) => {
	setEnv(t, { ROOST_BIN: "/bin/false" });
	const pi = new FakePi();
	pi.tools = ["read", "subagents"];
	const root = new Root(pi.api, { settings: () => ({}), onChange: () => {}, onEvent: () => {}, onTrouble: () => {} });
	await root.begin(pi.ctx);
	assert.deepEqual(pi.tools, ["read"]);
	await root.end(false);
	assert.deepEqual(pi.tools, ["read", "subagents"]);
});
