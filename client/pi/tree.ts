/**
 * The tree as this side last saw it, for surfaces and tools: read again when the daemon says that something has changed, never on a
 * tick, never from disk. A view: it owns nothing.
 */
import type { Methods, WorkerStatus, WorkerUsage } from "./protocol.ts";

export interface TreeViewOptions {
	read<M extends "status" | "usage">(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]>;
	onChange(): void;
}

export class TreeView {
	workers: WorkerStatus[] = [];
	usage: WorkerUsage[] = [];
	budget = 0;
	/** When this side first saw each execution run, on the clock that elapsed times are shown by. */
	readonly since = new Map<string, number>();
	private readonly options: TreeViewOptions;
	private looking: Promise<void> | undefined;
	private again = false;
	private over = false;

	constructor(options: TreeViewOptions) {
		this.options = options;
	}

	/** Workers that have not ended. */
	active(): number {
		return this.workers.filter((worker) => worker.state !== "ended").length;
	}

	hasWorkers(): boolean {
		return this.workers.length > 0;
	}

	refresh(): void {
		void this.look().catch(() => {});
	}

	/** The tree is closed, or nobody may look at it any more: nothing is to come. */
	clear(): void {
		this.workers = [];
		this.budget = 0;
		this.options.onChange();
	}

	end(): void {
		this.over = true;
	}

	/** Reads it again, and is waited for no longer than until the signal. Changes that come meanwhile are one further reading, and whoever asks meanwhile waits for that one, too. */
	look(signal?: AbortSignal): Promise<void> {
		this.again = true;
		this.looking ??= this.readAll().finally(() => (this.looking = undefined));
		if (!signal) return this.looking;
		if (signal.aborted) return Promise.resolve();
		let giveUp = () => {};
		const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
		signal.addEventListener("abort", giveUp);
		return Promise.race([this.looking, givenUp]).finally(() => signal.removeEventListener("abort", giveUp));
	}

	private async readAll(): Promise<void> {
		while (this.again && !this.over) {
			this.again = false;
			await this.read();
		}
		if (!this.over) this.options.onChange();
	}

	private async read(): Promise<void> {
		const workers: WorkerStatus[] = [];
		for (let after: string | undefined; ; ) {
			const page = await this.options.read("status", after ? { after } : {});
			workers.push(...page.workers);
			const [tree] = page.trees;
			if (tree) {
				this.budget = tree.budget_remaining;
			}
			if (!page.next) break;
			after = page.next;
		}
		const usage: WorkerUsage[] = [];
		for (let after: string | undefined; workers.length > 0; ) {
			const page = await this.options.read("usage", { each: true, ...(after ? { after } : {}) });
			usage.push(...(page.workers ?? []));
			if (!page.next) break;
			after = page.next;
		}
		this.workers = workers;
		this.usage = usage;
		const now = Date.now();
		for (const { execution, started_at_ms } of workers) if (started_at_ms && !this.since.has(execution)) this.since.set(execution, Math.min(now, started_at_ms));
	}
}
