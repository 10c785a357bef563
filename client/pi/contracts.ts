// Generated from the Rust types in proto/src. Do not edit: ROOST_REGENERATE=1 cargo test -p roost-proto-schema

import type { ExecutionId, JobId, Outcome, TreeId, WorkerId } from "./protocol.ts";

/** The `customType` of a message that has results of subagents in it. */
export const SUBAGENT_COMPLETION_TYPE = "subagent_completion";
/** The `customType` of words to or from a subagent that are no result. */
export const SUBAGENT_MESSAGE_TYPE = "subagent_message";
/** The `customType` of an entry of a session that keeps the compact details of one execution that has ended. */
export const SUBAGENT_RECORD_TYPE = "subagents:record";
/** The version of the compact form. */
export const COMPACT_SCHEMA_VERSION = 3;
/** The deepest worker that a usage tree shows. */
export const USAGE_TREE_DEPTH_MAX = 40;

/** Results as a saved session keeps them. */
export type CompactDetails = {
  /** Always 3. */
  schemaVersion: SchemaVersion,
  /** One task or several. */
  mode: Mode,
  /** Always `spawn`. */
  delegationMode: DelegationMode,
  /** The job, for what was launched without waiting. */
  asyncJobId?: JobId,
  /** For a single completion: which task of the job it is. */
  asyncTaskIndex?: number,
  /** Recursive totals of all results. */
  usageSummary: UsageSummary,
  /** Direct workers. */
  results: Array<CompactResult>,
  /** In an entry of the Pi extension: what it knows it by. */
  roost?: RoostMark,
};

/** A direct worker in compact details: a durable reference, with its outcome. */
export type CompactResult = {
  /** Its own turns alone. */
  completedTurns: number,
  /** Recursive totals of this worker. */
  usageSummary: UsageSummary,
  /** Its name. */
  name: string,
  /** Its tree: the other ids are counted anew in each state directory, trees are not. */
  tree: TreeId,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in the job. */
  taskIndex: number,
  /** What it was told to do; empty where that is not known. */
  task: string,
  /** How it ended; absent in a placeholder. */
  outcome?: Outcome,
  /** As a process would say it; -1 in a placeholder. */
  exitCode: number,
  /** What it answered. */
  finalOutput: string,
  /** Why it did not complete, in words. */
  errorMessage?: string,
  /** Its own use alone. */
  usage: UsageRecord,
  /** Its own tool calls alone, delegation included. */
  toolCalls: number,
};

/** How work is delegated. */
export type DelegationMode = "spawn";

/** One task or several. */
export type Mode = "single" | "parallel";

/** What the Pi extension knows a message of its own by. */
export type RoostMark = {
  /** The message or entry. */
  id: string,
  /** Executions and messages that it brought, each after its tree and a slash. */
  keys: Array<string>,
};

/** The number 3 and nothing else. */
export type SchemaVersion = 3;

/** A direct worker in live details. */
export type SingleResult = {
  /** Its own use and that of all below it. */
  subtree: UsageRecord,
  /** Tool calls of the same. */
  subtreeToolCalls: number,
  /** How many workers the subtree has, itself included; 0 in a placeholder. */
  subtreeWorkers: number,
  /** Whether some of it was ended before it could report the last of its use. */
  partialUsage?: boolean,
  /** Its name. */
  name: string,
  /** Its tree: the other ids are counted anew in each state directory, trees are not. */
  tree: TreeId,
  /** The worker. */
  worker: WorkerId,
  /** Its execution. */
  execution: ExecutionId,
  /** The job that launched it. */
  job: JobId,
  /** Its index in the job. */
  taskIndex: number,
  /** What it was told to do; empty where that is not known. */
  task: string,
  /** How it ended; absent in a placeholder. */
  outcome?: Outcome,
  /** As a process would say it; -1 in a placeholder. */
  exitCode: number,
  /** What it answered. */
  finalOutput: string,
  /** Why it did not complete, in words. */
  errorMessage?: string,
  /** Its own use alone. */
  usage: UsageRecord,
  /** Its own tool calls alone, delegation included. */
  toolCalls: number,
};

/** Live details of a launch, or of completions. */
export type SubagentDetails = {
  /** One task or several. */
  mode: Mode,
  /** Always `spawn`. */
  delegationMode: DelegationMode,
  /** The job, for what was launched without waiting. */
  asyncJobId?: JobId,
  /** For a single completion: which task of the job it is. */
  asyncTaskIndex?: number,
  /** Direct workers. */
  results: Array<SingleResult>,
  /** Own and descendant use of all of them. */
  aggregatedUsage: UsageRecord,
  /** Own and descendant tool calls. */
  aggregatedToolCalls: number,
  /** The same for each worker. */
  usageTree: Array<UsageNode>,
  /** In a message of the Pi extension: what it knows it by. */
  roost?: RoostMark,
};

/** One worker of a usage tree. */
export type UsageNode = {
  /** Its name. */
  name: string,
  /** The worker. */
  worker: WorkerId,
  /** Its own use. */
  usage: UsageRecord,
  /** Its own tool calls. */
  toolCalls: number,
  /** Its own use and that of all below it. */
  subtree: UsageRecord,
  /** Tool calls of the same. */
  subtreeToolCalls: number,
  /** Whether some of it is known to be too low. */
  partial?: boolean,
  /** Its children. */
  children?: Array<UsageNode>,
  /** Children that are too deep to be shown; they are in `subtree`. */
  childrenNotShown?: number,
};

/** Tokens and money. */
export type UsageRecord = {
  /** Input tokens that no cache served. */
  input: number,
  /** Output tokens. */
  output: number,
  /** Input tokens read from a cache. */
  cacheRead: number,
  /** Input tokens written to a cache. */
  cacheWrite: number,
  /** US dollars in JSON. */
  cost: number,
  /** Whether some of it has no known price: then `cost` is too low, and 0 is not "free". */
  costUnknown?: boolean,
  /** The last context size: a snapshot, 0 in sums. */
  contextTokens: number,
  /** Model turns. */
  turns: number,
};

/** Recursive totals. */
export type UsageSummary = {
  /** How many workers: identities. */
  subagentCount: number,
  /** Which, where all of them are known, by number. */
  subagentIds?: Array<WorkerId>,
  /** Input tokens that no cache served. */
  inputTokens: number,
  /** Output tokens. */
  outputTokens: number,
  /** Input tokens read from a cache. */
  cacheReadTokens: number,
  /** Input tokens written to a cache. */
  cacheWriteTokens: number,
  /** US dollars in JSON. */
  costUsd: number,
  /** Whether some of it has no known price. */
  costUnknown?: boolean,
  /** Model turns. */
  turns: number,
  /** Tool calls. */
  toolCalls: number,
  /** Whether some of it was ended before it could report the last of its use. */
  partialUsage?: boolean,
};
