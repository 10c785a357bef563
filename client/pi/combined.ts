/**
 * What a session has cost with its subagents: the session's own entries by Pi's rules, and each worker once. Workers of the tree that is
 * open are counted by the daemon; those of earlier trees by what the session has kept of them.
 */
import type { SessionEntry } from "@earendil-works/pi-coding-agent";
import type { UsageRecord } from "./contracts.ts";
import { NO_USAGE, getNestedSubagentResults, plus, recordOf, spent } from "./details.ts";
import type { MaybeDetailed } from "./details.ts";
import type { WorkerUsage } from "./protocol.ts";
import { usageLine } from "./status.ts";
import { isUnpriced, nanoDollars } from "./usage.ts";
import type { PiUsage } from "./usage.ts";

export interface CombinedUsage {
	usage: UsageRecord;
	/** Identities, not executions. */
	workers: number;
}

export function combinedUsage(entries: readonly SessionEntry[], live: readonly WorkerUsage[]): CombinedUsage {
	const known = new Set(live.map((worker) => worker.worker));
	const earlier = spent(getNestedSubagentResults(entries as readonly MaybeDetailed[]).filter((result) => !known.has(result.worker)));
	let usage = plus(sessionUsage(entries), earlier.usage);
	for (const worker of live) usage = plus(usage, recordOf(worker.own));
	return { usage, workers: earlier.workers + live.length };
}

/** The line below the editor; undefined before the first subagent. */
export function collectCombinedUsageStatusLine(entries: readonly SessionEntry[], live: readonly WorkerUsage[] = []): string | undefined {
	const { usage, workers } = combinedUsage(entries, live);
	return workers > 0 ? usageLine(usage, workers) : undefined;
}

/** The session's own use, as Pi's session statistics count it: abandoned branches, compactions and tools included. */
export function sessionUsage(entries: readonly SessionEntry[]): UsageRecord {
	let sum: UsageRecord = { ...NO_USAGE };
	for (const entry of entries) {
		const carrier = entry.type === "message" ? (entry.message as { role: string; usage?: PiUsage }) : (entry as { usage?: PiUsage });
		const counts = entry.type === "compaction" || entry.type === "branch_summary" || ("role" in carrier && (carrier.role === "assistant" || carrier.role === "toolResult"));
		if (!counts || !carrier.usage) continue;
		const { input, output, cacheRead, cacheWrite, cost } = carrier.usage;
		const turns = "role" in carrier && carrier.role === "assistant" ? 1 : 0;
		const used: UsageRecord = { input, output, cacheRead, cacheWrite, cost: (nanoDollars(cost?.total) ?? 0) / 1e9, contextTokens: 0, turns };
		sum = plus(sum, isUnpriced(carrier.usage) ? { ...used, costUnknown: true } : used);
	}
	return sum;
}
