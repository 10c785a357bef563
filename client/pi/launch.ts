/**
 * How a Pi is started as a worker: the Pi that runs now, with the model, thinking level and environment of who submits, the
 * conversation in a file of the tree's own (see `preflight.mjs`), and this extension.
 */
import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { delimiter } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Submitter, Task } from "./protocol.ts";

/** What a model says of one task. */
export interface TaskAsked {
	task: string;
	name?: string;
	model?: string;
	thinking?: string;
	tools?: string[];
	cwd?: string;
	max_subagents_allowed?: number;
	timeout_seconds?: number;
}

const HERE = dirname(fileURLToPath(import.meta.url));
export const TOOL_NAMES = ["subagents", "message_subagent", "stop_subagent", "get_subagent_result", "message_lead_agent"];

export function taskOf(asked: TaskAsked, pi: ExtensionAPI, ctx: ExtensionContext): Task {
	return {
		runner: "worker",
		argv: workerArgv(asked, pi, ctx),
		task: asked.task,
		...(asked.name ? { name: asked.name } : {}),
		...(asked.cwd ? { cwd: asked.cwd } : {}),
		max_subagents_allowed: asked.max_subagents_allowed ?? 0,
		...(asked.timeout_seconds ? { timeout_ms: Math.round(asked.timeout_seconds * 1000) } : {}),
	};
}

/** Environment, working directory and umask of this process; nothing that Roost has set. */
export function submitter(ctx: ExtensionContext): Submitter {
	const env = Object.entries(process.env).filter(([name, value]) => !name.startsWith("ROOST_") && value !== undefined) as [string, string][];
	return { env, cwd: ctx.cwd, umask: umask() };
}

function workerArgv(asked: TaskAsked, pi: ExtensionAPI, ctx: ExtensionContext): string[] {
	const entry = process.argv[1];
	if (!entry || !isAbsolute(entry)) throw new Error("this Pi was not started from a file of its own, so no other one can be started like it");
	const argv = [process.execPath, "--import", pathToFileURL(join(HERE, "preflight.mjs")).href, entry, "--mode", "rpc", "-ne"];
	for (const extension of [join(HERE, "index.ts"), ...furtherExtensions()]) argv.push("-e", extension);
	const model = asked.model ? checkedModel(asked.model, ctx) : ctx.model && `${ctx.model.provider}/${ctx.model.id}`;
	if (model) argv.push("--model", model);
	argv.push("--thinking", asked.thinking ?? pi.getThinkingLevel());
	argv.push("--tools", [...checkedTools(asked.tools, pi.getActiveTools()), ...TOOL_NAMES].join(","));
	return argv;
}

/** Nobody gives what he does not have: a restriction holds for all below. Those for subagents follow from the budget. */
function checkedTools(asked: string[] | undefined, active: string[]): string[] {
	const own = active.filter((name) => !TOOL_NAMES.includes(name));
	const wanted = [...new Set(asked ?? own)].filter((name) => !TOOL_NAMES.includes(name));
	const missing = wanted.filter((name) => !own.includes(name));
	if (missing.length > 0) throw new Error(`you do not have the tools ${missing.join(", ")} yourself; there are: ${own.join(", ")}`);
	return wanted;
}

/** What workers load beside this extension: a provider of one's own, for instance. The variable is passed on to all of the tree. */
function furtherExtensions(): string[] {
	return (process.env.PI_SUBAGENTS_EXTENSIONS ?? "").split(delimiter).filter(isAbsolute);
}

/** Pi takes any id of a known provider and fails at the first turn; here it is refused before anything is reserved. */
function checkedModel(asked: string, ctx: ExtensionContext): string {
	const available = ctx.modelRegistry.getAvailable();
	const matches = available.filter((model) => model.id === asked || `${model.provider}/${model.id}` === asked);
	const [found] = matches;
	if (found && matches.length === 1) return `${found.provider}/${found.id}`;
	const names = available.slice(0, 20).map((model) => `${model.provider}/${model.id}`).join(", ");
	throw new Error(`${found ? "several models are" : "no model is"} called ${asked}; there are: ${names}`);
}

/** umask(2) can only tell it by changing it. */
function umask(): number {
	const line = /^Umask:\s*([0-7]+)/m.exec(readFileSync("/proc/self/status", "utf8"));
	return line?.[1] ? Number.parseInt(line[1], 8) : 0o077;
}
