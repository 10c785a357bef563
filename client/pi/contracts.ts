/**
 * Result data as hosts of subagents keep it: live details, and the compact form (schema version 3) of saved sessions. Types alone;
 * the same shapes are in `proto/src/details.rs`.
 */
import type { ExecutionId, JobId, Outcome, WorkerId } from "./protocol.ts";

/** The `customType` of a message that has results of subagents in it. */
export const SUBAGENT_COMPLETION_TYPE = "subagent_completion";
/** The `customType` of words to or from a subagent that are no result. */
export const SUBAGENT_MESSAGE_TYPE = "subagent_message";
/** The `customType` of an entry that keeps the end of an execution, for programs. */
export const SUBAGENT_RECORD_TYPE = "subagents:record";
/** The version of the compact form. */
export const COMPACT_SCHEMA_VERSION = 3;

/** Tokens and money (US dollars). */
export interface UsageRecord {
	input: number;
	output: number;
	cacheRead: number;
	cacheWrite: number;
	cost: number;
	/** Some of it has no known price: `cost` is too low, and 0 is not "free". */
	costUnknown?: boolean;
	/** The last context size: a snapshot, 0 in sums. */
	contextTokens: number;
	turns: number;
}

/** A direct worker: a placeholder until its outcome is there. */
export interface SingleResult {
	name: string;
	worker: WorkerId;
	execution: ExecutionId;
	/** What it was told to do, where that is known. */
	task: string;
	/** How it ended; absent in a placeholder. */
	outcome?: Outcome;
	/** As a process would say it; -1 in a placeholder. */
	exitCode: number;
	finalOutput: string;
	errorMessage?: string;
	/** Its own use alone. */
	usage: UsageRecord;
	toolCalls: number;
	/** Its own use and that of all below it. */
	subtree: UsageRecord;
	subtreeToolCalls: number;
	/** How many workers the subtree has, itself included. */
	subtreeWorkers: number;
	partialUsage?: boolean;
	job: JobId;
	taskIndex: number;
}

/** One worker of a usage tree. */
export interface UsageNode {
	name: string;
	worker: WorkerId;
	usage: UsageRecord;
	toolCalls: number;
	subtree: UsageRecord;
	subtreeToolCalls: number;
	partial?: boolean;
	children?: UsageNode[];
	/** Children that are too deep to be shown; they are in `subtree`. */
	childrenNotShown?: number;
}

/** What this extension knows a message of its own by. */
export interface RoostMark {
	id: string;
	/** Executions and messages that it brought, each after its tree and a slash. */
	keys: string[];
}

/** Live details of a launch, or of completions. */
export interface SubagentDetails {
	mode: "single" | "parallel";
	delegationMode: "spawn";
	/** The job, for what was launched without waiting. */
	asyncJobId?: JobId;
	/** For a single completion: which task of the job it is. */
	asyncTaskIndex?: number;
	results: SingleResult[];
	aggregatedUsage: UsageRecord;
	aggregatedToolCalls: number;
	usageTree: UsageNode[];
	roost?: RoostMark;
}

/** Recursive totals. */
export interface UsageSummary {
	subagentCount: number;
	/** Which, where all of them are known. */
	subagentIds?: WorkerId[];
	inputTokens: number;
	outputTokens: number;
	cacheReadTokens: number;
	cacheWriteTokens: number;
	costUsd: number;
	costUnknown?: boolean;
	turns: number;
}

/** A durable reference to a worker, with its outcome. */
export interface CompactResult {
	name: string;
	worker: WorkerId;
	execution: ExecutionId;
	job: JobId;
	taskIndex: number;
	task: string;
	outcome?: Outcome;
	exitCode: number;
	finalOutput: string;
	errorMessage?: string;
	usage: UsageRecord;
	toolCalls: number;
	completedTurns: number;
	usageSummary: UsageSummary;
}

/** Results as a saved session keeps them. */
export interface CompactDetails {
	schemaVersion: typeof COMPACT_SCHEMA_VERSION;
	mode: "single" | "parallel";
	delegationMode: "spawn";
	asyncJobId?: JobId;
	asyncTaskIndex?: number;
	usageSummary: UsageSummary;
	results: CompactResult[];
	roost?: RoostMark;
}
