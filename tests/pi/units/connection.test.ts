/** A connection outlives its socket: the same calls again, in order; refusals that end it; what comes in pieces. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { BRIEF, Connection, Refused } from "../../../client/pi/connection.ts";
import type { ConnectionOptions, Notice } from "../../../client/pi/connection.ts";
import { WELCOME, daemon } from "./daemon.ts";

function connect(t: TestContext, path: string, more: Partial<ConnectionOptions> = {}): Connection {
	const connection = new Connection({ reach: async () => path, greeting: () => ({}), ...more });
	t.after(() => connection.close());
	return connection;
}

test("what has no answer when the socket breaks is said again, in order, and answered once", async (t) => {
	const { path, calls } = await daemon(t, (call, socket, say, connections) => {
		if (call.id === 0) return say(WELCOME);
		if (connections === 1) return void (call.method === "pause" && socket.destroy());
		say({ id: call.id, result: { method: call.method } });
	});
	const connection = connect(t, path);
	const answers = await Promise.all([connection.call("cap", {}), connection.call("pause", { paused: true })]);
	assert.deepEqual(answers as unknown, [{ method: "cap" }, { method: "pause" }]);
	assert.deepEqual(calls.map((call) => call.method), ["hello", "cap", "pause", "hello", "cap", "pause"]);
});

test("a refusal is an error with its kind; one of the hello that nothing changes is the end", async (t) => {
	const { path } = await daemon(t, (call, _socket, say) => {
		if (call.id === 0) return say(WELCOME);
		say({ id: call.id, error: { code: -32000, message: "no", data: { kind: "not_root", hint: "ask the root" } } });
	});
	await assert.rejects(connect(t, path).call("cap", { cap: 1 }), (error: Refused) => error.kind === "not_root" && error.message === "no (ask the root)");
	const closed = await daemon(t, (call, _socket, say) => say({ id: call.id, error: { code: -32000, message: "old", data: { kind: "stale_epoch" } } }));
	let ended: Error | undefined;
	const connection = connect(t, closed.path, { onEnd: (error) => (ended = error) });
	await assert.rejects(connection.call("cap", {}), /old/);
	assert.match(ended?.message ?? "", /old/);
	await assert.rejects(connection.call("cap", {}), /old/, "and it stays ended");
});

test("notifications come after the welcome, whole, with what looks like the end of a line inside", async (t) => {
	const text = "a\u2028b\u0085c\r";
	const { path } = await daemon(t, (call, socket, say) => {
		if (call.id !== 0) return say({ id: call.id, result: {} });
		const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...WELCOME })}\n${JSON.stringify({ jsonrpc: "2.0", method: "deliver", params: { wake: true, active_children: 0, items: [{ seq: 1, type: "task", text }] } })}\n`);
		for (let at = 0; at < bytes.length; at += 7) socket.write(bytes.subarray(at, at + 7));
	});
	const heard: (string | Notice)[] = [];
	const connection = connect(t, path, { onWelcome: () => heard.push("welcome"), onNotice: (notice) => heard.push(notice) });
	await connection.call("cap", {});
	assert.equal(heard[0], "welcome");
	assert.deepEqual((heard[1] as { params: unknown }).params, { wake: true, active_children: 0, items: [{ seq: 1, type: "task", text }] });
});

test("a daemon that cannot be reached ends a new connection, and not one that was there", async (t) => {
	const nowhere = connect(t, "", { reach: async () => Promise.reject(new Error("install it")) });
	await assert.rejects(nowhere.call("cap", {}), /install it/);
	let tries = 0;
	const { path } = await daemon(t, (call, socket, say, connections) => {
		if (call.id === 0) return say(WELCOME);
		if (connections === 1) socket.destroy();
		else say({ id: call.id, result: {} });
	});
	const connection = connect(t, path, { reach: async () => (++tries === 2 ? Promise.reject(new Error("another one starts it")) : path) });
	await connection.call("cap", {});
	assert.equal(tries, 3);
});

test("nobody is said to be missing before a try has found nobody", async (t) => {
	const missing: boolean[] = [];
	const { path } = await daemon(t, (call, socket, say, connections) => {
		if (connections === 3) return void socket.destroy();
		if (call.id === 0) return say(WELCOME);
		if (connections === 2) socket.destroy();
		else say({ id: call.id, result: {} });
	});
	const reach = async (isMissing: boolean) => (missing.push(isMissing) === 1 ? `${path}-none` : path);
	await connect(t, path, { reach }).call("cap", {}).catch(() => {});
	assert.deepEqual(missing, [false, true]);
	missing.length = 1;
	await connect(t, path, { reach }).call("cap", {});
	assert.deepEqual(missing.slice(1), [false, false, true]);
});

test("a hello without an answer ends a connection that is new, and is said again on one that was there", { timeout: 60_000 }, async (t) => {
	const silent = await daemon(t, () => {});
	const patience = { answerMs: 50, backMs: 60_000 };
	await assert.rejects(connect(t, silent.path, { patience }).call("cap", {}), /^Error: hello: no answer from roostd within 0\.05 s$/);
	const { path } = await daemon(t, (call, socket, say, connections) => {
		if (call.id === 0) return void (connections !== 2 && say(WELCOME));
		if (connections === 1) socket.destroy();
		else say({ id: call.id, result: {} });
	});
	await connect(t, path, { patience }).call("cap", {});
});

test("a daemon that never comes ends a new connection; one that was there is looked for, and its absence is told", { timeout: 60_000 }, async (t) => {
	const patience = { backMs: 50 };
	await assert.rejects(connect(t, "/no/such/socket", { patience }).call("cap", {}), /^Error: roostd is away and has not come back within 0\.05 s$/);
	let isThere = true;
	const { path } = await daemon(t, (call, socket, say) => {
		if (!isThere) return void socket.destroy();
		if (call.id === 0) return say(WELCOME);
		say({ id: call.id, result: {} });
		isThere = call.method !== "pause";
		if (!isThere) socket.end();
	});
	const told = new Promise<Error>((resolve) => {
		const connection = connect(t, path, { patience, onAway: resolve, onWelcome: () => void connection.call("pause", { paused: true }).catch(() => {}) });
	});
	assert.match((await told).message, /away/);
	isThere = true;
});

test("a call is given up by its signal, and by patience with a daemon that is silent or away", async (t) => {
	const silent = await daemon(t, (call, _socket, say) => void (call.id === 0 && say(WELCOME)));
	const patience = { answerMs: 20, backMs: 20 };
	const given = new AbortController();
	const call = connect(t, silent.path).call("cap", {}, given.signal);
	given.abort();
	await assert.rejects(call, /^Error: cap: given up/);
	await assert.rejects(connect(t, silent.path).call("cap", {}, given.signal), /given up/);
	await assert.rejects(connect(t, silent.path, { patience }).call("cap", {}), /^Error: cap: no answer from roostd within 0\.02 s$/);
	let isThere = true;
	const away = await daemon(t, (call, socket, say) => void (call.id !== 0 || !isThere ? socket.destroy() : say(WELCOME)));
	const connection = connect(t, away.path, { patience, onWelcome: () => (isThere = false) });
	await assert.rejects(connection.call("cap", {}), /^Error: cap: roostd is away and has not come back within 0\.02 s$/);
});

test("what is called at a welcome is said once at each", async (t) => {
	const { path, calls } = await daemon(t, (call, socket, say, connections) => {
		if (call.id === 0) return say(WELCOME);
		if (connections === 1) return void (call.method === "cap" && socket.destroy());
		say({ id: call.id, result: {} });
	});
	const connection = connect(t, path, { onWelcome: () => void connection.call("watch", {}).catch(() => {}) });
	await connection.call("cap", {});
	await connection.call("pause", { paused: true });
	assert.deepEqual(calls.map((call) => call.method).sort(), ["cap", "cap", "hello", "hello", "pause", "watch", "watch", "watch"]);
});

test("a first hello that is refused is the end, unless the broker is leaving; later ones are tried again", async (t) => {
	const refused = (kind: string) => ({ id: 0, error: { code: -32000, message: `no: ${kind}`, data: { kind } } });
	const { path } = await daemon(t, (_call, _socket, say) => say(refused("limit")));
	await assert.rejects(connect(t, path, { patience: BRIEF }).call("cap", {}), /no: limit/);
	const leaving = await daemon(t, (call, socket, say, connections) => {
		if (call.id === 0) return say(connections === 1 ? refused("draining") : connections === 3 ? refused("limit") : WELCOME);
		if (connections === 2) socket.destroy();
		else say({ id: call.id, result: {} });
	});
	await connect(t, leaving.path, { patience: BRIEF }).call("cap", {});
	assert.equal(leaving.calls.filter((call) => call.method === "hello").length, 4);
});
