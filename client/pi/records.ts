/**
 * One entry `subagents:record` in the session for each execution that has ended: history for other extensions, nothing that a model
 * reads. Compact details, schema version 3.
 */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { SUBAGENT_RECORD_TYPE } from "./contracts.ts";
import type { CompactDetails } from "./contracts.ts";
import { compactDetails, detailsFrom, singleResult } from "./details.ts";
import { keyIn } from "./inbox.ts";
import type { ExecutionId, ResultReply, TreeId, WorkerResult, WorkerStatus } from "./protocol.ts";

export class Records {
	private readonly pi: ExtensionAPI;
	/** Executions by their keys: see `Inbox`. */
	private readonly known = new Set<string>();
	private tree: TreeId = "";

	constructor(pi: ExtensionAPI) {
		this.pi = pi;
	}

	begin(ctx: ExtensionContext): void {
		for (const entry of ctx.sessionManager.getEntries()) {
			if (entry.type !== "custom" || entry.customType !== SUBAGENT_RECORD_TYPE) continue;
			for (const key of (entry.data as CompactDetails | undefined)?.roost?.keys ?? []) this.known.add(key);
		}
	}

	setTree(tree: TreeId): void {
		this.tree = tree;
	}

	private has(execution: ExecutionId): boolean {
		return this.known.has(keyIn(this.tree, execution));
	}

	/** What was stopped, by whomever, is announced by no message. What is below others is theirs. */
	async addStopped({ name, lead, execution, outcome }: WorkerStatus, read: (name: string) => Promise<ResultReply>): Promise<void> {
		if (outcome?.status !== "stopped" || lead || this.has(execution)) return;
		const reply = await read(name);
		if ("ended" in reply && reply.ended.execution === execution) this.add(reply.ended);
	}

	add(result: WorkerResult): void {
		if (this.has(result.execution)) return;
		const key = keyIn(this.tree, result.execution);
		this.known.add(key);
		const details = { ...detailsFrom([singleResult(result)]), asyncJobId: result.job, asyncTaskIndex: result.task_index, roost: { id: key, keys: [key] } };
		this.pi.appendEntry(SUBAGENT_RECORD_TYPE, compactDetails(details));
	}
}
