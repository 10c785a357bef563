/**
 * What a lead or a worker is owed and has not taken in: each thing once, deliveries with completions held back for a while,
 * withdrawn items dropped.
 * Pure: deliveries and the time come in, items come out. It sends nothing and knows no Pi.
 */
import type { Delivery, ExecutionId, Item, TreeId, WorkerResult } from "./protocol.ts";

/** The most identities that are remembered; what is owed at a time is far less. */
const SEEN_MAX = 10_000;

/** The late answer of a call in which a worker was put away. The daemon does not count these: their numbers go down from -1. */
export interface CallAnswer {
	seq: number;
	type: "answer";
	/** The request id of the call. */
	request: string;
	text: string;
	results: WorkerResult[];
}

export type Owed = Item | CallAnswer;

/** Items that may be taken in now, in order. */
export interface Ready {
	/** Whether they should start a turn when the receiver is idle. Without items: nothing below it is active any more. */
	wake: boolean;
	items: Owed[];
}

interface Held {
	item: Owed;
	ripeAt: number;
	wake: boolean;
	/** Somebody has it and has not taken it in yet. */
	handed: boolean;
}

export class Inbox {
	/** Direct children that had not ended at the last delivery. */
	activeChildren = 0;
	private holdMs = 0;
	private tree: TreeId = "";
	private readonly held = new Map<number, Held>();
	/** Numbers that were taken in, withdrawn, or owed twice. */
	private readonly done = new Set<number>();
	/** What was taken in, by the identities that hold across processes. */
	private readonly seen = new Set<string>();
	private bareWake = false;
	private answers = 0;

	/** Whose these items are: identities are counted anew in each state directory, trees are not. */
	setTree(tree: TreeId): void {
		this.tree = tree;
	}

	setHold(ms: number): void {
		this.holdMs = ms;
	}

	/** From now on it drops these. */
	remember(keys: Iterable<string>): void {
		for (const key of keys) bounded(this.seen, key);
	}

	/** Takes a delivery. Returns the numbers of what is owed although it was taken in: to be acknowledged, and no more. */
	deliver(delivery: Delivery, now: number): number[] {
		this.activeChildren = delivery.active_children;
		if (delivery.wake && delivery.items.length === 0) this.bareWake = true;
		const again: number[] = [];
		// What comes at once is taken in at once: a wake is one prompt.
		const ripeAt = delivery.items.some((item) => item.type === "completion") ? now + this.holdMs : now;
		for (const item of delivery.items) {
			if (this.done.has(item.seq) || this.held.has(item.seq)) continue;
			const [key] = this.keysOf(item);
			if (key && (this.seen.has(key) || [...this.held.values()].some((held) => this.keysOf(held.item).includes(key)))) {
				again.push(item.seq);
				bounded(this.done, item.seq);
				continue;
			}
			this.held.set(item.seq, { item, ripeAt, wake: delivery.wake, handed: false });
		}
		return again;
	}

	/** The answer of a call: owed by this side, and a turn like what wakes. */
	answer(request: string, text: string, results: WorkerResult[], now: number): void {
		for (const { execution } of results) this.consumed(execution);
		const seq = -++this.answers;
		this.held.set(seq, { item: { seq, type: "answer", request, text, results }, ripeAt: now, wake: true, handed: false });
	}

	/** Whether the answer of this call was taken in, here or by a process before this one. */
	hasAnswered(request: string): boolean {
		return this.seen.has(keyIn(this.tree, `call:${request}`));
	}

	/** Drops what was read by another way. */
	withdraw(items: readonly number[]): void {
		for (const seq of items) this.drop(seq);
	}

	/** The same for a result that we have read ourselves. */
	consumed(execution: ExecutionId): void {
		for (const { item } of [...this.held.values()])
			if (item.type === "completion" && item.execution === execution) this.drop(item.seq);
	}

	/** What may be taken in now. Order is kept: what stands behind a completion that is held back waits with it. */
	take(now: number, fits: (item: Owed) => boolean = () => true): Ready | undefined {
		const ready: Ready = { wake: this.bareWake, items: [] };
		for (const held of this.open()) {
			if (held.ripeAt > now || !fits(held.item)) break;
			held.handed = true;
			ready.wake ||= held.wake;
			ready.items.push(held.item);
		}
		if (ready.items.length === 0 && !this.bareWake) return undefined;
		this.bareWake = false;
		return ready;
	}

	/** When there will be more to take in, if nothing else arrives. */
	ripeAt(): number | undefined {
		return this.open()[0]?.ripeAt;
	}

	/** Whether anything is owed that was not taken in. */
	isEmpty(): boolean {
		return this.held.size === 0 && !this.bareWake;
	}

	/** These are in the receiver's input: they never come again. */
	accepted(items: readonly number[]): void {
		for (const seq of items) {
			const held = this.held.get(seq);
			for (const key of held ? this.keysOf(held.item) : []) bounded(this.seen, key);
			this.drop(seq);
		}
	}

	/** What was handed out and not accepted comes again; `bareWake`: so does a turn without items. */
	giveBack(bareWake: boolean): void {
		this.bareWake ||= bareWake;
		for (const held of this.held.values()) held.handed = false;
	}

	/** What an item is, whatever its number: the same in every process. Nothing for what comes once by its nature. */
	keysOf(item: Owed): string[] {
		return identitiesOf(item).map((identity) => keyIn(this.tree, identity));
	}

	private open(): Held[] {
		return [...this.held.values()].filter((held) => !held.handed).sort((a, b) => a.item.seq - b.item.seq);
	}

	private drop(seq: number): void {
		bounded(this.done, seq);
		this.held.delete(seq);
	}
}

/** An execution or a message of a tree, told apart from those of all other trees. */
export function keyIn(tree: TreeId, identity: string): string {
	return `${tree}/${identity}`;
}

function identitiesOf(item: Owed): string[] {
	switch (item.type) {
		case "answer":
			return [`call:${item.request}`, ...item.results.map((result) => result.execution)];
		case "completion":
			return [item.execution];
		case "lead_message":
		case "child_message":
			return [item.message];
		case "undelivered":
			return [`back:${item.message}`];
		case "task":
		case "notice":
			return [];
	}
}

/** The oldest goes first. */
function bounded<T>(set: Set<T>, value: T): void {
	set.add(value);
	if (set.size <= SEEN_MAX) return;
	const [oldest] = set;
	set.delete(oldest as T);
}
