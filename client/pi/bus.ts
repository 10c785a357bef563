/**
 * What other extensions of the same Pi may ask for over its bus: `subagents:rpc:ping`, `spawn`, `stop`, answered on
 * `<channel>:reply:<requestId>`, protocol version 2. What goes wrong is told in words of ours. Only while there is a session.
 */
import { existsSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Refused, requestId } from "./connection.ts";
import { submitter, taskOf } from "./launch.ts";
import type { TaskAsked } from "./launch.ts";
import type { Root } from "./root.ts";

export const RPC_VERSION = 2;

type Asked = Record<string, unknown>;

export function serveBus(pi: ExtensionAPI, root: Root, ctx: ExtensionContext): () => void {
	const verbs: Record<string, (asked: Asked) => Promise<unknown>> = {
		ping: async () => ({ version: RPC_VERSION }),
		spawn: (asked) => spawn(pi, root, ctx, asked),
		stop: (asked) => stop(root, asked),
	};
	const ends = Object.entries(verbs).map(([verb, work]) => {
		const channel = `subagents:rpc:${verb}`;
		return pi.events.on(channel, (data) => void answer(pi, channel, data, work));
	});
	pi.events.emit("subagents:ready", { version: RPC_VERSION });
	return () => ends.forEach((end) => end());
}

async function answer(pi: ExtensionAPI, channel: string, data: unknown, work: (asked: Asked) => Promise<unknown>): Promise<void> {
	const asked = (typeof data === "object" && data !== null ? data : {}) as Asked;
	if (typeof asked.requestId !== "string") return;
	const reply = `${channel}:reply:${asked.requestId}`;
	try {
		pi.events.emit(reply, { success: true, data: await work(asked) });
	} catch (error) {
		pi.events.emit(reply, { success: false, error: curated(error) });
	}
}

/** Only what a caller may decide: whose child it is, how deep, and with which budget of others is not among it. */
async function spawn(pi: ExtensionAPI, root: Root, ctx: ExtensionContext, asked: Asked): Promise<unknown> {
	const options = (typeof asked.options === "object" && asked.options !== null ? asked.options : {}) as Asked;
	const task: TaskAsked = { task: text(asked.prompt, "prompt") };
	const name = optional(options.name ?? options.description, "name");
	const model = optional(options.model, "model");
	const thinking = optional(options.thinking, "thinking");
	const cwd = optional(options.cwd, "cwd");
	if (cwd !== undefined && (!isAbsolute(cwd) || !existsSync(cwd) || !statSync(cwd).isDirectory())) throw new Curated("cwd must be the absolute path of a directory that exists");
	const full = { ...task, ...(name ? { name } : {}), ...(model ? { model } : {}), ...(thinking ? { thinking } : {}), ...(cwd ? { cwd } : {}) };
	let launchable;
	try {
		launchable = taskOf(full, pi, ctx);
	} catch (error) {
		throw new Curated((error as Error).message);
	}
	const receipt = await root.call("launch", { request_id: requestId(), tasks: [launchable], submitter: submitter(ctx) });
	root.launched();
	const [first] = receipt.tasks;
	return { id: first?.worker, name: first?.name, execution: first?.execution, job: receipt.job, status: first?.status };
}

async function stop(root: Root, asked: Asked): Promise<unknown> {
	const id = text(asked.agentId ?? asked.id ?? asked.name, "agentId");
	await root.tree.look();
	const worker = root.tree.workers.find((one) => !one.lead && (one.worker === id || one.name === id));
	if (!worker || worker.state === "ended") throw new Curated("no subagent of this session with that id is active");
	await root.call("stop", { request_id: requestId(), names: [worker.name] });
	return { id: worker.worker };
}

/** An error whose words are for the caller. */
class Curated extends Error {}

function curated(error: unknown): string {
	if (error instanceof Curated) return error.message;
	if (error instanceof Refused) return `${error.kind}: ${error.message}`;
	return "subagents are not available";
}

function text(value: unknown, what: string): string {
	if (typeof value !== "string" || value.trim() === "") throw new Curated(`${what} must be a text that is not empty`);
	return value;
}

function optional(value: unknown, what: string): string | undefined {
	if (value === undefined || value === null) return undefined;
	return text(value, what);
}
