/** Deliveries: what is handed to Pi, once, and acknowledged when it has entered. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Deliveries } from "../../../client/pi/delivery.ts";
import { FakePi, delivery, later, message } from "./fake.ts";

function deliveries(pi: FakePi) {
	const acked: number[][] = [];
	const made = new Deliveries(pi.api, { ack: (items) => void acked.push(items) });
	made.begin(pi.ctx);
	return { made, acked };
}

test("what is handed over while a settle is under way is in the conversation once", async () => {
	const pi = new FakePi();
	const { made, acked } = deliveries(pi);
	made.agentStart();
	made.turnEnd(false);
	made.arrived(delivery(message(1, "m1")));
	made.agentSettled(pi.ctx);
	await later();
	assert.equal(pi.handed.length, 1);
	made.agentStart();
	made.messageEnd({ role: "custom", details: pi.handed[0]?.details });
	// The daemon says `go_on`, or that it does not park.
	made.giveBack();
	made.tick();
	made.turnEnd(false);
	assert.equal(pi.handed.length, 1);
	assert.deepEqual(acked, [[1]]);
	made.end();
});

test("a turn without items that could not begin comes again", () => {
	const pi = new FakePi();
	const { made } = deliveries(pi);
	made.arrived({ wake: true, active_children: 0, items: [] });
	assert.match(pi.handed[0]?.content ?? "", /None of your subagents is active/);
	made.agentSettled(pi.ctx);
	made.look();
	assert.equal(pi.handed.length, 2);
	made.end();
});

test("waiting for what may never come leaves nothing at the signal", async () => {
	const { made } = deliveries(new FakePi());
	const { signal } = new AbortController();
	let looks = 0;
	const waited = made.arrives(() => ++looks < 4, signal);
	for (let at = 0; at < 4; at += 1) {
		assert.ok(getEventListeners(signal, "abort").length <= 1);
		made.look();
		await later();
	}
	await waited;
	assert.equal(getEventListeners(signal, "abort").length, 0);
	made.end();
});

test("what was handed over without a run and has not entered comes again", () => {
	const pi = new FakePi();
	const { made } = deliveries(pi);
	made.arrived({ wake: false, active_children: 0, items: [message(1, "m1")] });
	assert.equal(pi.handed.length, 1);
	made.giveBack();
	assert.equal(pi.handed.length, 2);
	made.end();
});
