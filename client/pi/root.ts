/**
 * A Pi that a person or a program uses: the root of the tree of its session. It opens or finds that tree, keeps the lease, takes what
 * it is owed into the conversation, and tells the surfaces what changes. It draws nothing and knows no tool.
 */
import { join } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BRIEF, Connection, requestId } from "./connection.ts";
import type { Notice, Patience } from "./connection.ts";
import { startDaemon } from "./daemon.ts";
import type { Places } from "./daemon.ts";
import { Deliveries } from "./delivery.ts";
import type { ExecutionId, Identity, Methods, NumberedEvent, Opened, Settings, Welcome, WorkerResult } from "./protocol.ts";
import type { Owed } from "./inbox.ts";
import { Records } from "./records.ts";
import type { Role, Waited, WaitingMethod } from "./role.ts";
import { sweepConversations } from "./sweep.ts";
import { NO_POWERS, Toolset } from "./toolset.ts";
import { TreeView } from "./tree.ts";
import { Waits } from "./waits.ts";

export interface RootOptions {
	/** Settings of a new tree. */
	settings(): Partial<Settings>;
	/** Something of the tree has changed. */
	onChange(): void;
	onEvent(event: NumberedEvent): void;
	/** One line for a person. */
	onTrouble(line: string, ctx: ExtensionContext): void;
	/** With the daemon. */
	patience?: Patience;
}

export class Root implements Role {
	readonly tree: TreeView;
	readonly deliveries: Deliveries;
	private readonly options: RootOptions;
	private readonly toolset: Toolset;
	private readonly records: Records;
	private readonly waits: Waits;
	private connection: Connection | undefined;
	private identity: Identity | undefined;
	private ctx: ExtensionContext | undefined;
	private knownGeneration: number | undefined;
	private nextEvent: number | undefined;
	private leaseLost = false;
	/** The daemon is, for longer than there is patience. */
	private isAway = false;
	private dialogs = 0;
	private operator: Connection | undefined;
	/** Asks for the generation. */
	private asking: Connection | undefined;
	private opening = Promise.resolve();
	private over = false;
	private places: Places | undefined;
	private readonly patience: Patience;
	private readonly reach = async (isMissing: boolean): Promise<string> => {
		if (isMissing || !this.places) this.places = await startDaemon();
		return this.places.socket;
	};

	constructor(pi: ExtensionAPI, options: RootOptions) {
		this.options = options;
		this.patience = options.patience ?? BRIEF;
		this.toolset = new Toolset(pi);
		this.records = new Records(pi);
		this.waits = new Waits({ reach: this.reach, greeting: () => ({ identity: this.identity ?? null }), patience: { backMs: this.patience.backMs } });
		this.tree = new TreeView({
			read: (method, params) => this.call(method, params),
			onChange: () => {
				this.toolset.show({ budget: this.tree.budget, hasChildren: this.tree.hasWorkers(), hasLead: false });
				this.deliveries.look();
				this.options.onChange();
			},
		});
		this.deliveries = new Deliveries(pi, {
			ack: (items) => void this.call("ack", { items }).catch(() => {}),
			onTaken: (items) => this.taken(items),
		});
	}

	// What the tools and surfaces ask for.

	call<M extends keyof Methods>(method: M, params: Methods[M]["params"], signal?: AbortSignal): Promise<Methods[M]["result"]> {
		if (!this.connection) return Promise.reject(new Error("subagents are off: there is no connection to roostd"));
		return this.connection.call(method, params, signal);
	}

	async wait<M extends WaitingMethod>(method: M, params: Methods[M]["params"], signal: AbortSignal | undefined): Promise<Waited<M>> {
		return { answer: await this.waits.make({ method, params } as never, signal) } as Waited<M>;
	}

	generation(): number | undefined {
		return this.knownGeneration;
	}

	consumed(executions: readonly ExecutionId[]): void {
		for (const execution of executions) this.deliveries.inbox.consumed(execution);
	}

	launched(): void {
		this.tree.refresh();
	}

	ended(results: readonly WorkerResult[]): void {
		for (const result of results) this.records.add(result);
	}

	/** Stops everything that is active. */
	async interrupt(): Promise<number> {
		const reply = await this.call("interrupt", { request_id: requestId() });
		this.knownGeneration = reply.generation;
		return reply.stopped;
	}

	/** A dialog that is open has the keys. */
	async dialog<T>(open: Promise<T>): Promise<T> {
		this.dialogs += 1;
		try {
			return await open;
		} finally {
			this.dialogs -= 1;
		}
	}

	hasDialog(): boolean {
		return this.dialogs > 0;
	}

	/** Where the conversations of this tree's workers are: see `preflight.mjs`. */
	conversations(): string {
		if (!this.places || !this.identity) throw new Error("subagents are off: there is no connection to roostd");
		return join(this.places.stateDir, "pi", this.identity.tree);
	}

	/** Whether there is anything to wait for: what runs, what is queued, and what has been told of and not arrived. Nothing comes from a daemon that is gone. */
	isExpecting(): boolean {
		return (this.tree.active() > 0 && !this.isAway) || !this.deliveries.inbox.isEmpty();
	}

	// What Pi tells.

	async begin(ctx: ExtensionContext): Promise<void> {
		this.ctx = ctx;
		this.records.begin(ctx);
		this.deliveries.begin(ctx);
		// Until there is a tree none of the tools can work.
		this.toolset.show(NO_POWERS);
		this.opening = this.open(ctx).catch((error: Error) => this.trouble(`Subagents are off: ${error.message}`));
		await this.opening;
	}

	async end(isOver: boolean): Promise<void> {
		this.deliveries.end();
		this.waits.close();
		// A tree that is just being opened is closed like any other.
		await within(1_000, this.opening);
		this.over = true;
		this.operator?.close();
		this.asking?.close();
		this.tree.end();
		if (!isOver) this.toolset.showAll();
		if (isOver && this.connection && this.mayClose()) {
			await within(1_000, this.call("close", { now: !this.ctx?.sessionManager.getSessionFile() }).catch(() => undefined));
		}
		this.connection?.close();
	}

	/** A tree that nothing can be resumed in goes with its session; any other one waits for it to come back. */
	private mayClose(): boolean {
		return !this.leaseLost && (!this.ctx?.sessionManager.getSessionFile() || !this.tree.hasWorkers());
	}

	// The tree and its lease.

	private async open(ctx: ExtensionContext): Promise<void> {
		const operator = new Connection({ reach: this.reach, greeting: () => ({}), patience: this.patience });
		this.operator = operator;
		let opened: Opened;
		try {
			// Only before it has a tree of its own does this connection see all of them.
			await sweepConversations(() => this.places?.stateDir, () => operator.call("status", {}));
			opened = await operator.call("open", {
				request_id: requestId(), key: `pi:${ctx.sessionManager.getSessionId()}`, settings: this.options.settings(), ephemeral: !ctx.sessionManager.getSessionFile(),
			});
		} finally {
			operator.close();
		}
		if (this.over) return;
		this.identity = { tree: opened.tree, token: opened.token };
		this.deliveries.inbox.setTree(opened.tree);
		this.records.setTree(opened.tree);
		const isOpen = await new Promise<boolean>((resolve) => {
			this.connection = new Connection({
				reach: this.reach,
				greeting: () => ({ identity: this.identity ?? null, role: "root" }),
				patience: this.patience,
				onWelcome: (welcome) => {
					this.welcomed(welcome);
					resolve(true);
				},
				onNotice: (notice) => this.noticed(notice),
				onAway: (error) => this.missed(error),
				onEnd: (error) => {
					// Whoever waits for results must not do so for ever.
					this.tree.clear();
					this.trouble(`Subagents are off: ${error.message}`);
					resolve(false);
				},
			});
		});
		if (!isOpen) return;
		await this.tree.look();
		// What was stopped while the session was closed.
		for (const one of this.tree.workers) void this.records.addStopped(one, (name) => this.call("result", { name })).catch(() => {});
	}

	private missed(error: Error): void {
		this.isAway = true;
		// Whoever waits for results must not do so for ever.
		this.deliveries.look();
		this.trouble(error.message);
	}

	private welcomed(welcome: Welcome): void {
		this.leaseLost = false;
		this.isAway = false;
		this.knownGeneration = welcome.generation ?? undefined;
		this.deliveries.welcomed(welcome);
		void this.call("watch", {}).then(() => this.tree.refresh()).catch(() => {});
		void this.follow().catch(() => {});
	}

	/** Only what happens from now on, or since the last connection. */
	private async follow(): Promise<void> {
		if (this.nextEvent === undefined) {
			const { end } = await this.call("events", { from: 1 });
			this.nextEvent = end;
		}
		this.events((await this.call("events", { from: this.nextEvent, follow: true })).events);
	}

	private noticed(notice: Notice): void {
		switch (notice.method) {
			case "deliver": return this.deliveries.arrived(notice.params);
			case "withdraw": return this.deliveries.withdrawn(notice.params.items);
			case "progress": return this.tree.refresh();
			case "events": return this.events(notice.params.events);
			case "lease_lost": return this.lostLease();
			case "park": return undefined;
		}
	}

	private events(events: readonly NumberedEvent[]): void {
		for (const event of events) {
			if (event.number < (this.nextEvent ?? 0)) continue;
			this.nextEvent = event.number + 1;
			if (event.event === "interrupted") this.refreshGeneration();
			if (event.event === "ended" && event.outcome.status === "stopped") void this.stopped(event.execution).catch(() => {});
			this.options.onEvent(event);
		}
	}

	private async stopped(execution: ExecutionId): Promise<void> {
		await this.tree.look();
		const found = this.tree.workers.find((one) => one.execution === execution);
		if (found) await this.records.addStopped(found, (name) => this.call("result", { name }));
	}

	/** Somebody has interrupted the tree. What is launched after we know of it is none of what was meant. */
	private refreshGeneration(): void {
		this.asking?.close();
		const caller = this.asking = new Connection({
			reach: this.reach,
			greeting: () => ({ identity: this.identity ?? null }),
			onWelcome: (welcome) => {
				this.knownGeneration = welcome.generation ?? undefined;
				caller.close();
			},
		});
	}

	private lostLease(): void {
		this.leaseLost = true;
		this.trouble("Another Pi has opened this session: results of subagents arrive there");
	}

	private taken(items: readonly Owed[]): void {
		for (const item of items) if (item.type === "completion") this.records.add(item);
		this.tree.refresh();
	}

	private trouble(line: string): void {
		if (this.ctx && !this.over) this.options.onTrouble(line, this.ctx);
	}
}

function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
	return Promise.race([work, new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), ms).unref())]);
}
