/** The lines that a person sees of a tree: who runs, that somebody waits, what it has cost. Pure: numbers and a clock come in. */
import type { UsageRecord } from "./contracts.ts";
import { visibleLine } from "./visible.ts";
import type { WorkerState, WorkerStatus } from "./protocol.ts";

/** Names on the line before it says how many more there are. */
const NAMES_MAX = 4;
const NAME_CHARS = 24;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

const IDLE: readonly WorkerState[] = ["waiting", "parked", "wake_ready", "finishing", "parking"];

export const WAITING_TEXT = "Waiting for subagents - don't close the session";

export function waitingLine(tick: number): string {
	return `${FRAMES[tick % FRAMES.length]} ${WAITING_TEXT}`;
}

/** Undefined when nothing is active. */
export function runningLine(workers: readonly WorkerStatus[], since: ReadonlyMap<string, number>, now: number): string | undefined {
	const active = workers.filter((worker) => worker.state !== "ended");
	if (active.length === 0) return undefined;
	const queued = active.filter((worker) => worker.state === "queued");
	const idle = active.filter((worker) => IDLE.includes(worker.state));
	const running = active.filter((worker) => worker.state !== "queued" && !IDLE.includes(worker.state));
	const named = running.slice(0, NAMES_MAX).map((worker) => `${shortName(worker.name)} ${elapsed(now - (since.get(worker.execution) ?? now))}`);
	const parts = [
		...(named.length > 0 ? [named.join(", ")] : []),
		...(running.length > NAMES_MAX ? [`+${running.length - NAMES_MAX} more`] : []),
		...(queued.length > 0 ? [`${queued.length} queued`] : []),
		...(idle.length > 0 ? [`${idle.length} idle`] : []),
	];
	return `Running ${running.length}${parts.length > 0 ? `: ${parts.join(" · ")}` : ""}`;
}

export function usageLine(usage: UsageRecord, workers: number): string {
	const money = `$${usage.cost.toFixed(3)}${usage.costUnknown ? "+?" : ""}`;
	const cache = usage.cacheRead + usage.cacheWrite > 0 ? ` R${tokens(usage.cacheRead)} W${tokens(usage.cacheWrite)}` : "";
	return `WITH SUBS ↑${tokens(usage.input)} ↓${tokens(usage.output)}${cache} ${money} (${workers} subagent${workers === 1 ? "" : "s"})`;
}

export function elapsed(ms: number): string {
	const seconds = Math.max(0, Math.floor(ms / 1000));
	if (seconds < 60) return `${seconds}s`;
	const minutes = Math.floor(seconds / 60);
	return minutes < 60 ? `${minutes}m${String(seconds % 60).padStart(2, "0")}s` : `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

function tokens(count: number): string {
	if (count < 1000) return String(count);
	return count < 1_000_000 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

function shortName(name: string): string {
	const line = visibleLine(name);
	return line.length > NAME_CHARS ? `${line.slice(0, NAME_CHARS - 1)}…` : line;
}
