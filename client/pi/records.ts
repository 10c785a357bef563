/**
 * One entry `subagents:record` in the session for each execution that has ended: history for other extensions, nothing that a model
 * reads. Compact details, schema version 3.
 */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { CompactDetails } from "./contracts.ts";
import { compactDetails, detailsFrom, singleResult } from "./details.ts";
import type { ExecutionId, WorkerResult } from "./protocol.ts";

export const RECORD_TYPE = "subagents:record";

export class Records {
	private readonly pi: ExtensionAPI;
	private readonly known = new Set<ExecutionId>();

	constructor(pi: ExtensionAPI) {
		this.pi = pi;
	}

	begin(ctx: ExtensionContext): void {
		for (const entry of ctx.sessionManager.getEntries()) {
			if (entry.type !== "custom" || entry.customType !== RECORD_TYPE) continue;
			for (const result of (entry.data as CompactDetails | undefined)?.results ?? []) this.known.add(result.execution);
		}
	}

	add(result: WorkerResult): void {
		if (this.known.has(result.execution)) return;
		this.known.add(result.execution);
		const details = { ...detailsFrom([singleResult(result)]), asyncJobId: result.job, asyncTaskIndex: result.task_index };
		this.pi.appendEntry(RECORD_TYPE, compactDetails(details));
	}
}
