/**
 * Details of launches and completions: made from what the daemon says, recognised, put into one list, and summed. The rules are those
 * of `proto/src/details.rs`. Pure.
 */
import { COMPACT_SCHEMA_VERSION, SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE, SUBAGENT_RECORD_TYPE } from "./contracts.ts";
import type { CompactDetails, CompactResult, RoostMark, SingleResult, SubagentDetails, UsageNode, UsageRecord, UsageSummary } from "./contracts.ts";
import { exitCode, isSuccess, outcomeText } from "./outcome.ts";
import type { ExecutionId, Item, JobId, Receipt, Usage, WorkerId, WorkerResult, WorkerUsage } from "./protocol.ts";

export { SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE };
export type { CompactDetails, RoostMark, SingleResult, SubagentDetails };

const NANO = 1e9;
/** Readers of JSON bound their nesting. */
const USAGE_TREE_DEPTH_MAX = 40;
/** Sums are made in whole nano-dollars: dollars are no numbers to add. */
const nanos = (usd: number): number => Math.round(usd * NANO);

export const NO_USAGE: Readonly<UsageRecord> = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, contextTokens: 0, turns: 0 };

export function recordOf(usage: Usage | undefined, contextTokens = 0): UsageRecord {
	if (!usage) return { ...NO_USAGE, contextTokens };
	const { input, output, cache_read: cacheRead, cache_write: cacheWrite, cost, turns } = usage;
	const record: UsageRecord = { input, output, cacheRead, cacheWrite, cost: cost / NANO, contextTokens, turns };
	return usage.cost_unknown ? { ...record, costUnknown: true } : record;
}

/** The sum; a context size is never summed. */
export function plus(a: UsageRecord, b: UsageRecord): UsageRecord {
	const sum: UsageRecord = {
		input: a.input + b.input,
		output: a.output + b.output,
		cacheRead: a.cacheRead + b.cacheRead,
		cacheWrite: a.cacheWrite + b.cacheWrite,
		cost: (nanos(a.cost) + nanos(b.cost)) / NANO,
		contextTokens: 0,
		turns: a.turns + b.turns,
	};
	return a.costUnknown || b.costUnknown ? { ...sum, costUnknown: true } : sum;
}

/** The places of tasks that were accepted and have not ended. */
export function launchedDetails(receipt: Receipt, tasks: readonly string[]): SubagentDetails {
	const results = receipt.tasks.map((task, taskIndex): SingleResult => ({
		name: task.name, worker: task.worker, execution: task.execution, task: tasks[taskIndex] ?? "",
		exitCode: -1, finalOutput: "", usage: { ...NO_USAGE }, toolCalls: 0,
		subtree: { ...NO_USAGE }, subtreeToolCalls: 0, subtreeWorkers: 0, job: receipt.job, taskIndex,
	}));
	return { ...detailsFrom(results), asyncJobId: receipt.job };
}

export function singleResult(result: WorkerResult, task = ""): SingleResult {
	const { own, total, workers, partial, context_tokens } = result.usage ?? { own: undefined, total: undefined, workers: 1 };
	const { outcome } = result;
	return {
		name: result.name, worker: result.worker, execution: result.execution, task, outcome, exitCode: exitCode(outcome),
		finalOutput: result.answer, ...(isSuccess(outcome) ? {} : { errorMessage: outcomeText(outcome) }),
		usage: recordOf(own, context_tokens ?? 0), toolCalls: own?.tool_calls ?? 0,
		subtree: recordOf(total), subtreeToolCalls: total?.tool_calls ?? 0, subtreeWorkers: Math.max(1, workers),
		...(partial ? { partialUsage: true } : {}), job: result.job, taskIndex: result.task_index,
	};
}

/** Details of the completions among these items. */
export function detailsOf(items: readonly Item[]): SubagentDetails {
	const completions = items.filter((item) => item.type === "completion");
	const details = detailsFrom(completions.map((item) => singleResult(item)));
	const [first] = completions;
	if (!first || completions.some((item) => item.job !== first.job)) return details;
	return { ...details, asyncJobId: first.job, ...(completions.length === 1 ? { asyncTaskIndex: first.task_index } : {}) };
}

/** Details of these results: what a foreground launch answers with. */
export function detailsFrom(results: SingleResult[]): SubagentDetails {
	const sum = spent(results);
	return {
		mode: results.length === 1 ? "single" : "parallel", delegationMode: "spawn", results,
		aggregatedUsage: sum.usage, aggregatedToolCalls: sum.toolCalls, usageTree: [],
	};
}

/** Whether these are live or compact details of subagents. */
export function isSubagentDetails(details: unknown): details is SubagentDetails | CompactDetails {
	if (typeof details !== "object" || details === null) return false;
	const { mode, delegationMode, results } = details as Partial<SubagentDetails>;
	return (mode === "single" || mode === "parallel") && delegationMode === "spawn" && Array.isArray(results) && results.every(isResult);
}

function isResult(result: unknown): boolean {
	if (typeof result !== "object" || result === null) return false;
	const { name, worker, execution, usage } = result as Partial<SingleResult>;
	return typeof name === "string" && typeof worker === "string" && typeof execution === "string" && typeof usage === "object";
}

/** The launch that these details are of. */
export function asyncJobId(details: unknown): JobId | undefined {
	return isSubagentDetails(details) ? details.asyncJobId : undefined;
}

/** The execution that a result is of: the key for accounting. */
export function subagentExecutionId(result: Pick<SingleResult, "execution">): ExecutionId {
	return result.execution;
}

/** A message or a session entry that may carry details. */
export interface MaybeDetailed {
	role?: string;
	type?: string;
	toolName?: string;
	customType?: string;
	details?: unknown;
	message?: unknown;
	data?: unknown;
}

/** One list of all that a lead launched, records of what was stopped included: a completion takes the place of its placeholder, and each execution is there once. */
export function getNestedSubagentResults(messages: Iterable<MaybeDetailed>): SingleResult[] {
	const list: SingleResult[] = [];
	const byExecution = new Map<ExecutionId, number>();
	const bySlot = new Map<string, number>();
	for (const result of resultsIn(messages)) {
		const slot = `${result.job}/${result.taskIndex}`;
		const known = byExecution.get(result.execution) ?? bySlot.get(slot);
		if (known === undefined) {
			byExecution.set(result.execution, list.length);
			bySlot.set(slot, list.length);
			list.push(result);
			continue;
		}
		byExecution.set(result.execution, known);
		const kept = list[known] as SingleResult;
		// The first word on an end is the last: a repeat, or a placeholder that comes late, changes nothing.
		if (!kept.outcome && result.outcome) list[known] = { ...result, task: result.task || kept.task };
	}
	return list;
}

function* resultsIn(messages: Iterable<MaybeDetailed>): Generator<SingleResult> {
	for (const entry of messages) {
		const message = (entry.type === "message" ? entry.message : entry) as MaybeDetailed;
		const isRecord = entry.type === "custom" && entry.customType === SUBAGENT_RECORD_TYPE;
		if (!isRecord && message?.role !== "toolResult" && message?.customType !== SUBAGENT_COMPLETION_TYPE) continue;
		const details = isRecord ? entry.data : message.details;
		if (!isSubagentDetails(details)) continue;
		for (const result of details.results) yield "subtree" in result ? result : expanded(result);
	}
}

/** What a list of results has cost. A worker's totals are over all its executions: of one that was resumed only the newest count. */
export function spent(results: readonly SingleResult[]): { usage: UsageRecord; toolCalls: number; workers: number; partial: boolean } {
	const newest = new Map<WorkerId, SingleResult>();
	const identities = new Set(results.map((result) => result.worker));
	for (const result of results) {
		if (!result.outcome) continue;
		const kept = newest.get(result.worker);
		if (!kept || numberOf(result.execution) > numberOf(kept.execution)) newest.set(result.worker, result);
	}
	const all = { usage: { ...NO_USAGE } as UsageRecord, toolCalls: 0, workers: identities.size - newest.size, partial: false };
	for (const result of newest.values()) {
		all.usage = plus(all.usage, result.subtree);
		all.toolCalls += result.subtreeToolCalls;
		all.workers += result.subtreeWorkers;
		all.partial ||= result.partialUsage ?? false;
	}
	return all;
}

/** The compact form of these details. */
export function compactDetails(details: SubagentDetails): CompactDetails {
	const { mode, delegationMode, asyncJobId, asyncTaskIndex, results } = details;
	return {
		schemaVersion: COMPACT_SCHEMA_VERSION, mode, delegationMode,
		...(asyncJobId === undefined ? {} : { asyncJobId }), ...(asyncTaskIndex === undefined ? {} : { asyncTaskIndex }),
		usageSummary: summary(results), results: results.map(compactResult),
		...(details.roost ? { roost: details.roost } : {}),
	};
}

export function compactResult(result: SingleResult): CompactResult {
	const { name, worker, execution, job, taskIndex, task, outcome, exitCode, finalOutput, errorMessage, usage, toolCalls } = result;
	return {
		name, worker, execution, job, taskIndex, task, ...(outcome ? { outcome } : {}), exitCode, finalOutput,
		...(errorMessage === undefined ? {} : { errorMessage }), usage, toolCalls, completedTurns: usage.turns, usageSummary: summary([result]),
	};
}

function summary(results: readonly SingleResult[]): UsageSummary {
	const { usage, workers } = spent(results);
	const known = [...new Set(results.map((result) => result.worker))];
	return {
		subagentCount: workers, ...(known.length === workers ? { subagentIds: known } : {}),
		inputTokens: usage.input, outputTokens: usage.output, cacheReadTokens: usage.cacheRead, cacheWriteTokens: usage.cacheWrite,
		costUsd: usage.cost, ...(usage.costUnknown ? { costUnknown: true } : {}), turns: usage.turns,
	};
}

function expanded(result: CompactResult): SingleResult {
	const { usageSummary: sums, completedTurns: _, ...same } = result;
	const subtree: UsageRecord = {
		input: sums.inputTokens, output: sums.outputTokens, cacheRead: sums.cacheReadTokens, cacheWrite: sums.cacheWriteTokens,
		cost: sums.costUsd, ...(sums.costUnknown ? { costUnknown: true } : {}), contextTokens: 0, turns: sums.turns,
	};
	return { ...same, subtree, subtreeToolCalls: result.toolCalls, subtreeWorkers: result.outcome ? sums.subagentCount : 0 };
}

/** The workers of a usage reply below their leads. Who has a lead that is not among them stands at the top. */
export function usageTree(workers: readonly WorkerUsage[]): UsageNode[] {
	const known = new Set(workers.map((worker) => worker.worker));
	const below = new Map<WorkerId | undefined, WorkerUsage[]>();
	for (const worker of workers) {
		const lead = worker.lead && known.has(worker.lead) ? worker.lead : undefined;
		below.set(lead, [...(below.get(lead) ?? []), worker]);
	}
	const nodes = (lead: WorkerId | undefined, depth: number): UsageNode[] => (below.get(lead) ?? []).map((worker) => {
		const children = depth < USAGE_TREE_DEPTH_MAX ? nodes(worker.worker, depth + 1) : [];
		const hidden = depth < USAGE_TREE_DEPTH_MAX ? 0 : (below.get(worker.worker)?.length ?? 0);
		return {
			name: worker.name, worker: worker.worker, usage: recordOf(worker.own, worker.context_tokens ?? 0), toolCalls: worker.own.tool_calls,
			subtree: recordOf(worker.total), subtreeToolCalls: worker.total.tool_calls, ...(worker.partial ? { partial: true } : {}),
			...(children.length > 0 ? { children } : {}), ...(hidden > 0 ? { childrenNotShown: hidden } : {}),
		};
	});
	return nodes(undefined, 1);
}

/** Executions are numbered in the order of their launch: x7 comes before x12. */
function numberOf(execution: ExecutionId): number {
	return Number(execution.slice(1));
}
