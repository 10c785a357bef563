/**
 * A Pi that is a worker: it takes its task and whatever it is owed into its conversation, says what it does and uses, settles when the
 * agent has, parks when it is asked to, and leaves when it is told. It knows no tool.
 */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Connection, isRefusal, requestId } from "./connection.ts";
import type { Notice } from "./connection.ts";
import { saveContext, savedCalls } from "./context.ts";
import { Deliveries } from "./delivery.ts";
import { workerIdentity } from "./identity.ts";
import type { Owed } from "./inbox.ts";
import type { WorkerStart } from "./identity.ts";
import type { Activity, ExecutionId, Methods, Welcome, WorkerResult } from "./protocol.ts";
import type { Role, Waited, WaitingMethod } from "./role.ts";
import { NO_POWERS, Toolset } from "./toolset.ts";
import { endedBadly, textOf, turnEnd } from "./turn.ts";
import type { AssistantSaid } from "./turn.ts";
import { UsageMeter } from "./usage.ts";
import type { PiUsage } from "./usage.ts";
import { ParkableWaits, requestOf } from "./parkable.ts";
import { Waits } from "./waits.ts";
import { visibleLine } from "./visible.ts";
import type { WaitingCall } from "./waits.ts";

const PARK_AGAIN_MS = 1_000;
/** A stream that goes on for long is a sign of life, told this often. */
const ALIVE_EVERY_MS = 60_000;

export class Worker implements Role {
	private readonly pi: ExtensionAPI;
	private readonly start: WorkerStart;
	private readonly deliveries: Deliveries;
	private readonly meter = new UsageMeter();
	private readonly toolset: Toolset;
	private readonly waiting: ParkableWaits;
	private connection: Connection | undefined;
	private welcome: Welcome | undefined;
	private hasChildren = false;
	/** The last message of the model since the last settle. */
	private last: AssistantSaid | undefined;
	private activity: Activity = "idle";
	private toolsRunning = 0;
	private aliveAt = 0;
	/** It was asked to park and has not answered. */
	private parkAsked = false;
	private over = false;

	constructor(pi: ExtensionAPI, start: WorkerStart) {
		this.pi = pi;
		this.start = start;
		this.toolset = new Toolset(pi);
		this.waiting = new ParkableWaits({
			waits: new Waits({ reach: () => this.reach(), greeting: () => ({ identity: workerIdentity() }) }),
			answered: (request, text, results) => this.deliveries.answered(request, text, results),
		});
		this.deliveries = new Deliveries(pi, {
			ack: (items) => void this.call("ack", { items }).catch(() => {}),
			onSettled: (ctx) => void this.settle(ctx),
			onTaken: (items) => this.taken(items),
		});
	}

	// What the tools ask for.

	call<M extends keyof Methods>(method: M, params: Methods[M]["params"], signal?: AbortSignal): Promise<Methods[M]["result"]> {
		if (!this.connection) return Promise.reject(new Error("there is no connection to roostd yet"));
		return this.connection.call(method, params, signal);
	}

	wait<M extends WaitingMethod>(method: M, params: Methods[M]["params"], signal: AbortSignal | undefined): Promise<Waited<M>> {
		return this.waiting.make({ method, params } as WaitingCall, signal) as Promise<Waited<M>>;
	}

	generation(): number | undefined {
		return undefined;
	}

	consumed(executions: readonly ExecutionId[]): void {
		for (const execution of executions) this.deliveries.inbox.consumed(execution);
	}

	launched(): void {
		this.hasChildren = true;
		void this.refreshTools();
	}

	ended(_results: readonly WorkerResult[]): void {}

	// What Pi tells.

	begin(ctx: ExtensionContext): void {
		if (this.connection) return;
		this.deliveries.begin(ctx);
		this.deliveries.inbox.setTree(workerIdentity().tree);
		this.toolset.show(NO_POWERS);
		this.connection = new Connection({
			reach: () => this.reach(),
			greeting: () => ({ identity: workerIdentity(), role: "worker", capabilities: ["park", "steer"] }),
			onWelcome: (welcome) => this.welcomed(welcome),
			onNotice: (notice) => this.noticed(notice),
			// Another process speaks for this worker, or nobody may any more.
			onEnd: (error) => {
				console.error(`roost-pi: this worker ends: ${visibleLine(error.message)}`);
				this.start.leave();
			},
		});
	}

	end(): void {
		this.over = true;
		this.deliveries.end();
		this.waiting.close();
		this.connection?.close();
	}

	listen(): void {
		const { pi, deliveries } = this;
		pi.on("agent_start", () => {
			deliveries.agentStart();
			this.report("busy");
		});
		pi.on("message_start", () => deliveries.tick());
		pi.on("message_update", () => this.alive());
		pi.on("message_end", (event, ctx) => this.messageEnd(event.message as PiMessage, ctx));
		pi.on("turn_end", (event) => {
			// A run that ends badly looks for no steering: what is owed comes when it has settled.
			if (endedBadly(event.message)) deliveries.tick();
			else deliveries.turnEnd((event.toolResults ?? []).length > 0);
		});
		pi.on("tool_execution_start", () => {
			deliveries.tick();
			this.meter.toolCall();
			this.toolsRunning += 1;
			this.report("tool");
		});
		pi.on("tool_execution_end", () => {
			this.toolsRunning = Math.max(0, this.toolsRunning - 1);
			if (this.toolsRunning === 0) this.report("busy");
		});
		pi.on("agent_end", () => deliveries.tick());
		pi.on("agent_settled", (_event, ctx) => {
			this.toolsRunning = 0;
			deliveries.agentSettled(ctx);
		});
		pi.on("session_compact", (event, ctx) => {
			const usage = (event.compactionEntry as { usage?: PiUsage }).usage;
			if (usage) this.meter.add(usage, ctx.model?.cost);
			deliveries.compactionEnd();
		});
	}

	private messageEnd(message: PiMessage, ctx: ExtensionContext): void {
		this.deliveries.messageEnd(message);
		if (message.role === "toolResult" && message.usage) this.meter.add(message.usage);
		if (message.role !== "assistant") return;
		const said = message as unknown as AssistantSaid;
		this.last = said;
		this.meter.turn(message.usage, ctx.model?.cost);
		this.meter.context(ctx.getContextUsage()?.tokens);
		const text = textOf(said);
		this.tell({ activity: this.activity, usage: this.meter.report(), ...(text.trim() ? { text } : {}) });
	}

	// What the daemon tells.

	private async reach(): Promise<string> {
		const socket = process.env.ROOST_SOCKET;
		if (!socket) throw new Error("ROOST_SOCKET is not set");
		return socket;
	}

	private welcomed(welcome: Welcome): void {
		const first = !this.welcome;
		this.welcome = welcome;
		this.deliveries.welcomed(welcome);
		// A new broker does not know what is going on here.
		this.tell({ activity: this.activity });
		if (!first) return;
		const name = welcome.worker?.name;
		if (name && !this.pi.getSessionName()) this.pi.setSessionName(name);
		// One that goes on may have children; until it is known it is shown the tools for them.
		this.hasChildren = welcome.worker?.wakes ?? false;
		this.showTools(welcome.budget_remaining ?? 0);
		if (!welcome.worker?.wakes) return;
		void this.refreshTools();
		// An answer that was taken in after the context was saved is in the conversation.
		this.waiting.goOn(savedCalls(process.env.ROOST_CONTEXT).filter((call) => !this.deliveries.inbox.hasAnswered(requestOf(call))));
	}

	private noticed(notice: Notice): void {
		if (notice.method === "deliver") this.deliveries.arrived(notice.params);
		else if (notice.method === "withdraw") this.deliveries.withdrawn(notice.params.items);
		else if (notice.method === "park") this.askedToPark();
	}

	private taken(items: readonly Owed[]): void {
		for (const item of items) if (item.type === "answer") this.waiting.taken(item.request);
		// A lead may have raised the allowance with its words.
		if (items.some((item) => item.type === "lead_message")) void this.refreshTools();
	}

	// How a turn ends.

	private async settle(ctx: ExtensionContext): Promise<void> {
		this.activity = "idle";
		if (this.parkAsked && this.waiting.isWaiting()) return this.park();
		if (this.parkAsked) this.declinePark();
		// In the middle of a call: its answer starts the next turn, and the daemon knows that we wait.
		if (this.waiting.calls().length > 0) return;
		const { answer, ended } = turnEnd(this.last);
		this.last = undefined;
		this.meter.context(ctx.getContextUsage()?.tokens);
		try {
			const context = saveContext(this.start.session, []);
			const { next } = await this.call("settle", {
				request_id: requestId(), ended, usage: this.meter.report(), ...(answer === undefined ? {} : { answer }), ...(context ? { context } : {}),
			});
			if (next === "exit") this.start.leave();
			else if (next === "go_on") this.deliveries.giveBack();
		} catch (error) {
			this.failed("settle", error as Error);
		}
	}

	/** Nobody would ever hear of an end that cannot be told: the process ends, and its standard error says why. */
	private failed(what: string, error: Error): void {
		if (this.over) return;
		// It was parked or ended meanwhile.
		if (isRefusal(error, "parked", "stale_epoch")) return this.start.leave();
		console.error(`roost-pi: this worker cannot ${what}: ${visibleLine(error.message)}`);
		this.start.leave(true);
	}

	private askedToPark(): void {
		this.parkAsked = true;
		const inCall = this.waiting.isWaiting();
		this.waiting.detach();
		if (!this.deliveries.isBusy() && (inCall || this.deliveries.isQuiet())) void this.park();
		else if (!inCall) this.declinePark();
	}

	private declinePark(): void {
		this.parkAsked = false;
		void this.call("park_decline", { not_before_ms: PARK_AGAIN_MS }).catch(() => {});
	}

	private async park(): Promise<void> {
		this.parkAsked = false;
		try {
			const context = saveContext(this.start.session, this.waiting.calls());
			const { parked } = await this.call("park_ready", { request_id: requestId(), ...(context ? { context } : {}) });
			if (parked) this.start.leave();
			else this.deliveries.giveBack();
		} catch (error) {
			this.failed("park", error as Error);
		}
	}

	// What is said of the work.

	private report(activity: Activity): void {
		if (activity === this.activity) return;
		this.activity = activity;
		this.tell({ activity });
	}

	private alive(): void {
		const now = Date.now();
		if (now - this.aliveAt < ALIVE_EVERY_MS) return;
		this.aliveAt = now;
		this.tell({ activity: this.activity });
	}

	private tell(report: Methods["report"]["params"]): void {
		this.aliveAt = Date.now();
		void this.call("report", report).catch(() => {});
	}

	private async refreshTools(): Promise<void> {
		const name = this.welcome?.worker?.name;
		if (!name) return;
		const status = await this.call("status", { name }).catch(() => undefined);
		const self = status?.workers.find((worker) => worker.name === name);
		if (!self) return;
		this.hasChildren = status?.workers.some((worker) => worker.lead === self.worker) ?? false;
		this.showTools(self.budget_remaining);
	}

	private showTools(budget: number): void {
		this.toolset.show({ budget, hasChildren: this.hasChildren, hasLead: true });
	}
}

type PiMessage = { role: string; details?: unknown; usage?: PiUsage };
