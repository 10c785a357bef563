/** How an execution ended, in words and as an exit code: the same as the daemon's own (`proto/src/outcome.rs`). */
import type { Outcome } from "./protocol.ts";

type Failed = Extract<Outcome, { status: "failed" }>;

/** Whether it came to an end by itself, with an answer. */
export function isSuccess(outcome: Outcome): boolean {
	return outcome.status === "completed" || outcome.status === "wrapped_up";
}

export function exitCode(outcome: Outcome): number {
	if (isSuccess(outcome)) return 0;
	if (outcome.status === "stopped") return 130;
	if (outcome.status !== "failed") return 1;
	switch (outcome.kind) {
		case "exit": return outcome.code >= 1 && outcome.code <= 255 ? outcome.code : 1;
		case "crash": return Math.min(255, 128 + outcome.signal);
		case "timeout":
		case "idle_timeout": return 124;
		case "spawn": return 127;
		default: return 1;
	}
}

export function outcomeText(outcome: Outcome): string {
	switch (outcome.status) {
		case "completed": return "completed";
		case "wrapped_up": return "completed: it was told to come to an end";
		case "stopped": return "stopped";
		case "aborted": return `aborted: ${outcome.reason}`;
		case "failed": return `failed: ${failureText(outcome)}`;
	}
}

function failureText(failure: Failed): string {
	switch (failure.kind) {
		case "spawn": return `could not be started: ${failure.reason}`;
		case "startup": return `its process never came up: ${failure.reason}`;
		case "exit": return `exit code ${failure.code}`;
		case "crash": return `ended by signal ${failure.signal}`;
		case "timeout": return "its time was over";
		case "lost": return "lost: its process is gone and nobody saw how it ended";
		case "context_corrupt": return failure.reason ? `its saved context is damaged: ${failure.reason}` : "its saved context is damaged";
		case "parent_failed": return "ended because its lead failed";
		case "protocol": return `it broke the worker protocol: ${failure.reason}`;
		case "provider": return `its model's provider failed: ${failure.message}`;
		case "truncated": return "its last message was cut at a length limit and says nothing";
		case "turn_limit": return `its turn limit was reached: ${failure.message}`;
		case "idle_timeout": return "it showed no sign of life";
		case "no_answer": return "it ended without an answer";
	}
}
