/** Deliveries: what is handed to Pi, once, and acknowledged when it has entered. */
import assert from "node:assert/strict";
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

test("what was handed over without a run and has not entered comes again", () => {
	const pi = new FakePi();
	const { made } = deliveries(pi);
	made.arrived({ wake: false, active_children: 0, items: [message(1, "m1")] });
	assert.equal(pi.handed.length, 1);
	made.giveBack();
	assert.equal(pi.handed.length, 2);
	made.end();
});
