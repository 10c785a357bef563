/** The inbox: each thing once, in order, held back, taken back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Inbox } from "../../../client/pi/inbox.ts";
import { completion, delivery, message } from "./fake.ts";

const numbers = (inbox: Inbox, now: number) => inbox.take(now)?.items.map((item) => item.seq) ?? [];

function inbox(tree = "t1"): Inbox {
	const made = new Inbox();
	made.setHold(200);
	made.setTree(tree);
	return made;
}

test("a completion is held back, with what came along with it and what follows it", () => {
	const box = inbox();
	box.deliver(delivery(message(1, "m1")), 0);
	assert.deepEqual(numbers(box, 0), [1]);
	box.deliver(delivery(message(2, "m2"), completion(3, "x1")), 0);
	box.deliver(delivery(message(4, "m3")), 10);
	assert.equal(box.ripeAt(), 200);
	assert.deepEqual(numbers(box, 199), []);
	assert.deepEqual(numbers(box, 200), [2, 3, 4]);
	assert.equal(box.ripeAt(), undefined);
});

test("what is withdrawn or was read by ourselves in time is never seen", () => {
	const box = inbox();
	box.deliver(delivery(completion(1, "x1"), completion(2, "x2"), completion(3, "x3")), 0);
	box.withdraw([1]);
	box.consumed("x3");
	box.deliver(delivery(completion(1, "x1")), 0);
	assert.deepEqual(numbers(box, 200), [2]);
});

test("nothing comes twice by number, execution or message, also in another process", () => {
	const box = inbox();
	const all = [completion(1, "x7"), message(2, "m9")];
	box.deliver(delivery(...all), 0);
	assert.deepEqual(box.deliver(delivery(...all), 0), []);
	assert.deepEqual(box.deliver(delivery(completion(5, "x7")), 0), [5]);
	assert.deepEqual(numbers(box, 200), [1, 2]);
	box.accepted([1, 2]);
	assert.deepEqual(box.deliver(delivery(completion(1, "x7"), completion(6, "x7"), message(8, "m9")), 0), [6, 8]);
	assert.deepEqual(numbers(box, 400), []);
	const next = inbox();
	next.remember(["t1/x7", "t1/m9"]);
	assert.deepEqual(next.deliver(delivery(completion(1, "x7"), message(2, "m9"), message(3, "m10")), 0), [1, 2]);
	assert.deepEqual(numbers(next, 200), [3]);
});

test("another tree counts its executions and messages anew, and so does what kept no tree", () => {
	const box = inbox("t2");
	box.remember(["t1/x1", "t1/m1", "x1", "m1"]);
	assert.deepEqual(box.deliver(delivery(completion(1, "x1"), message(2, "m1")), 0), []);
	assert.deepEqual(numbers(box, 200), [1, 2]);
});

test("what was handed out and not accepted comes again", () => {
	const box = inbox();
	box.deliver(delivery(message(1, "m1"), message(2, "m2")), 0);
	assert.deepEqual(numbers(box, 0), [1, 2]);
	assert.deepEqual(numbers(box, 0), []);
	box.accepted([1]);
	box.giveBack(false);
	assert.deepEqual(numbers(box, 0), [2]);
});

test("a delivery without items is a turn", () => {
	const box = inbox();
	box.deliver({ wake: true, active_children: 0, items: [] }, 0);
	assert.deepEqual(box.take(0), { wake: true, items: [] });
	assert.equal(box.take(0), undefined);
});
