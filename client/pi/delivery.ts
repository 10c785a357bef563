/**
 * From what is owed to messages in Pi's conversation, and back: what has entered the conversation is acknowledged. It knows neither
 * who the receiver is nor how a connection is made.
 *
 * While the agent is busy, items are handed over at the end of a turn, just before Pi looks for steering: until then a result that is
 * read another way can still be taken back, and several items become one message and cost one turn.
 */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE, detailsOf } from "./details.ts";
import type { RoostMark, SubagentDetails } from "./details.ts";
import { Inbox } from "./inbox.ts";
import type { Owed, Ready } from "./inbox.ts";
import type { Delivery, DeliveryMode, Item, Welcome, WorkerResult } from "./protocol.ts";
import { itemsText } from "./texts.ts";

/** Pauses before a wake that started no turn (no model, no key) is tried again. */
const WAKE_AGAIN_MS = [1_000, 5_000, 30_000];
/** A compaction by hand that never says that it is over. */
const COMPACTION_MS_MAX = 120_000;

export interface DeliveryOptions {
	/** Tells the daemon that these have entered the conversation. */
	ack(items: number[]): void;
	/** The agent has settled and nothing is about to start it. */
	onSettled?(ctx: ExtensionContext): void;
	/** These are in the conversation now. */
	onTaken?(items: Owed[]): void;
}

export class Deliveries {
	readonly inbox = new Inbox();
	private readonly pi: ExtensionAPI;
	private readonly options: DeliveryOptions;
	private ctx: ExtensionContext | undefined;
	private mode: DeliveryMode = "steer";
	private busy = false;
	private compacting: NodeJS.Timeout | undefined;
	/** Messages that Pi has and that were not seen in the conversation, by their id. */
	private readonly sent = new Map<string, Owed[]>();
	/** Seen in the conversation; on disk once the next event comes. */
	private entered: string[] = [];
	private lastId = 0;
	private timer: NodeJS.Timeout | undefined;
	private failedWakes = 0;
	/** Resolved at the next chance to hand something over: for print mode, which waits in a turn's end. */
	private arrival: (() => void) | undefined;
	private closed = false;

	constructor(pi: ExtensionAPI, options: DeliveryOptions) {
		this.pi = pi;
		this.options = options;
	}

	isBusy(): boolean {
		return this.busy;
	}

	/** Nothing runs, nothing is about to, and nothing waits to be handed over. */
	isQuiet(): boolean {
		return !this.busy && this.sent.size === 0 && this.inbox.isEmpty();
	}

	/** A session was loaded: what its entries show was taken in before. */
	begin(ctx: ExtensionContext): void {
		this.ctx = ctx;
		for (const entry of ctx.sessionManager.getEntries()) {
			if (entry.type === "custom_message") this.inbox.remember(markOf(entry.details)?.keys ?? []);
		}
	}

	end(): void {
		this.closed = true;
		clearTimeout(this.timer);
		clearTimeout(this.compacting);
		this.arrival?.();
	}

	welcomed(welcome: Welcome): void {
		this.mode = welcome.delivery ?? "steer";
		this.inbox.setHold(welcome.hold_ms ?? 0);
	}

	arrived(delivery: Delivery): void {
		const again = this.inbox.deliver(delivery, Date.now());
		if (again.length > 0) this.options.ack(again);
		this.look();
	}

	/** The answer of a call in which this worker was put away. */
	answered(request: string, text: string, results: WorkerResult[]): void {
		this.inbox.answer(request, text, results, Date.now());
		this.look();
	}

	withdrawn(items: number[]): void {
		this.inbox.withdraw(items);
	}

	/** What was handed over and did not enter comes again, now or when it may. */
	giveBack(): void {
		// A run that has begun meanwhile has what was handed to it.
		if (!this.busy) this.takeBack();
		this.look();
	}

	// What Pi tells.

	/** Any event of the agent: what entered before it is on disk by now. */
	tick(): void {
		if (this.entered.length === 0) return;
		const ids = this.entered;
		this.entered = [];
		for (const id of ids) this.stored(id);
	}

	agentStart(): void {
		this.tick();
		this.busy = true;
		this.compactionEnd();
	}

	messageEnd(message: { role: string; details?: unknown }): void {
		this.tick();
		const id = message.role === "custom" ? markOf(message.details)?.id : undefined;
		if (id && this.sent.has(id)) this.entered.push(id);
	}

	/** A turn has ended; Pi looks for steering right after this. `goesOn`: the model is asked again anyway. */
	turnEnd(goesOn: boolean): void {
		this.tick();
		const followUp = this.mode === "follow_up";
		const ready = this.inbox.take(Date.now(), (item) => item.type !== "completion" || !(this.mode === "next_turn" || (followUp && goesOn)));
		if (ready && ready.items.length > 0) this.hand(ready, { deliverAs: followUp && !goesOn ? "followUp" : "steer", triggerTurn: true });
		else if (ready?.wake) this.inbox.deliver({ wake: true, active_children: this.inbox.activeChildren, items: [] }, Date.now());
	}

	/** Resolves when there is something to hand over, or when nothing is to be waited for any more. */
	async arrives(isWorthWaiting: () => boolean, signal?: AbortSignal): Promise<void> {
		const now = () => (this.inbox.ripeAt() ?? Infinity) <= Date.now();
		while (!this.closed && !signal?.aborted && !now() && (isWorthWaiting() || !this.inbox.isEmpty())) {
			let arrived = () => {};
			const arrival = new Promise<void>((resolve) => (this.arrival = arrived = resolve));
			signal?.addEventListener("abort", arrived);
			const ripeAt = this.inbox.ripeAt();
			if (ripeAt !== undefined) this.lookIn(ripeAt - Date.now());
			await arrival;
			signal?.removeEventListener("abort", arrived);
		}
	}

	agentSettled(ctx: ExtensionContext): void {
		this.tick();
		this.busy = false;
		// Pi has dropped what it has not shown, or the run could not even begin.
		if (this.sent.size > 0) {
			this.takeBack();
			const pause = WAKE_AGAIN_MS[this.failedWakes++];
			if (pause !== undefined) this.lookIn(pause);
		} else {
			// Runs that are asked for in this handler would begin inside of it.
			setImmediate(() => this.look());
		}
		this.options.onSettled?.(ctx);
	}

	/** A prompt of the user begins a run: what waits for one comes with it. */
	nextTurn(): { customType: string; content: string; display: boolean; details: SubagentDetails } | undefined {
		if (this.mode !== "next_turn") return undefined;
		const ready = this.inbox.take(Date.now());
		return ready && ready.items.length > 0 ? this.message(ready) : undefined;
	}

	compactionBegin(): void {
		this.compactionEnd();
		this.compacting = setTimeout(() => this.compactionEnd(), COMPACTION_MS_MAX);
	}

	compactionEnd(): void {
		if (!this.compacting) return;
		clearTimeout(this.compacting);
		this.compacting = undefined;
		this.look();
	}

	/** Hands over what may enter now, or comes back when something may. */
	look(): void {
		clearTimeout(this.timer);
		this.arrival?.();
		this.arrival = undefined;
		if (this.closed || !this.ctx) return;
		const now = Date.now();
		if (!this.busy && !this.compacting && this.ctx.isIdle()) this.handIdle(now);
		const ripeAt = this.inbox.ripeAt();
		if (ripeAt !== undefined && ripeAt > now) this.lookIn(ripeAt - now);
	}

	private handIdle(now: number): void {
		const ready = this.inbox.take(now, (item) => item.type !== "completion" || this.mode !== "next_turn");
		if (!ready) return;
		if (ready.wake) {
			this.busy = true;
			this.hand(ready, { deliverAs: "steer", triggerTurn: true });
			return;
		}
		// It is stored at once, starts no run, and no event tells of it.
		const id = this.hand(ready, { triggerTurn: false });
		const entries = (this.ctx as ExtensionContext).sessionManager.getEntries();
		if (entries.some((entry) => entry.type === "custom_message" && markOf(entry.details)?.id === id)) this.stored(id);
	}

	private takeBack(): void {
		this.inbox.giveBack([...this.sent.values()].some((items) => items.length === 0));
		this.sent.clear();
	}

	private lookIn(ms: number): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.look(), ms);
	}

	private hand(ready: Ready, how: { deliverAs?: "steer" | "followUp"; triggerTurn: boolean }): string {
		const message = this.message(ready);
		this.pi.sendMessage(message, how);
		return (message.details.roost as RoostMark).id;
	}

	private message(ready: Ready) {
		const id = `${process.pid}-${++this.lastId}`;
		this.sent.set(id, ready.items);
		const keys = ready.items.flatMap((item) => this.inbox.keysOf(item));
		const completions = ready.items.flatMap(completionsIn);
		return {
			customType: completions.length > 0 ? SUBAGENT_COMPLETION_TYPE : SUBAGENT_MESSAGE_TYPE,
			content: itemsText(ready.items),
			display: true,
			details: { ...detailsOf(completions), roost: { id, keys } },
		};
	}

	private stored(id: string): void {
		const items = this.sent.get(id);
		if (!items) return;
		this.sent.delete(id);
		this.failedWakes = 0;
		const numbers = items.map((item) => item.seq);
		this.inbox.accepted(numbers);
		const counted = items.filter((item) => item.type !== "answer").map((item) => item.seq);
		if (counted.length > 0) this.options.ack(counted);
		this.options.onTaken?.(items);
	}
}

function completionsIn(item: Owed): Item[] {
	if (item.type === "answer") return item.results.map((result) => ({ ...result, seq: item.seq, type: "completion" }));
	return item.type === "completion" ? [item] : [];
}

function markOf(details: unknown): RoostMark | undefined {
	return (details as { roost?: RoostMark } | undefined)?.roost;
}
