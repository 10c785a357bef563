/**
 * One entry `subagents:record` in the session for each execution that has ended: history for other extensions, nothing that a model
 * reads. Compact details, schema version 3.
 */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { CompactDetails } from "./contracts.ts";
import { compactDetails, detailsFrom, singleResult } from "./details.ts";
import { keyIn } from "./inbox.ts";
import type { TreeId, WorkerResult } from "./protocol.ts";

export const RECORD_TYPE = "subagents:record";

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
			if (entry.type !== "custom" || entry.customType !== RECORD_TYPE) continue;
			for (const key of (entry.data as CompactDetails | undefined)?.roost?.keys ?? []) this.known.add(key);
		}
	}

	setTree(tree: TreeId): void {
		this.tree = tree;
	}

	add(result: WorkerResult): void {
		const key = keyIn(this.tree, result.execution);
		if (this.known.has(key)) return;
		this.known.add(key);
		const details = { ...detailsFrom([singleResult(this.tree, result)]), asyncJobId: result.job, asyncTaskIndex: result.task_index, roost: { id: key, keys: [key] } };
		this.pi.appendEntry(RECORD_TYPE, compactDetails(details));
	}
}
