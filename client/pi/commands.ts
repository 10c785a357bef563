/** Commands for a person: the cap of the tree, and the list of subagents with what can be done to them. */
import { join } from "node:path";
import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { requestId } from "./connection.ts";
import { conversationText } from "./conversation.ts";
import { outcomeText } from "./outcome.ts";
import type { WorkerStatus } from "./protocol.ts";
import type { Root } from "./root.ts";
import { visible, visibleLine } from "./visible.ts";

const USAGE = "/subagents [view NAME | message NAME TEXT | stop [NAME...]]";

export function registerCommands(pi: ExtensionAPI, root: () => Root): void {
	const cap = {
		description: "Show or set how many subagents may run at a time, in this session",
		handler: told((args, ctx) => setCap(root(), args, ctx)),
	};
	// The first spelling is the one that people know.
	pi.registerCommand("subagent:max-concurency", cap);
	pi.registerCommand("subagent:max-concurrency", cap);
	pi.registerCommand("subagents", { description: "List subagents; view, message or stop one", handler: told((args, ctx) => manage(root(), args, ctx)) });
}

type Handler = (args: string, ctx: ExtensionCommandContext) => Promise<void>;

function told(handler: Handler): Handler {
	return (args, ctx) => handler(args, ctx).catch((error: Error) => say(ctx, error.message, "error"));
}

async function setCap(root: Root, args: string, ctx: ExtensionCommandContext): Promise<void> {
	const asked = args.trim();
	if (asked !== "" && !/^[1-9]\d*$/.test(asked)) throw new Error("how many may run at a time is a whole number from 1 on");
	const reply = await root.call("cap", asked === "" ? {} : { cap: Number(asked) });
	say(ctx, `At most ${reply.cap} subagents run at a time (${reply.live} now, ${reply.queued} queued)`);
}

async function manage(root: Root, args: string, ctx: ExtensionCommandContext): Promise<void> {
	await root.tree.look();
	const [verb, name, ...rest] = args.trim().split(/\s+/);
	if (!verb) return list(root, ctx);
	if (verb === "stop") return stop(root, [name, ...rest].filter((one) => one !== undefined), ctx);
	if (!name) throw new Error(USAGE);
	if (verb === "view") return view(root, worker(root, name), ctx);
	if (verb === "message" && rest.length > 0) return message(root, name, rest.join(" "), ctx);
	throw new Error(USAGE);
}

async function list(root: Root, ctx: ExtensionCommandContext): Promise<void> {
	const { workers } = root.tree;
	if (workers.length === 0) return say(ctx, "No subagent was started in this session");
	if (ctx.mode !== "tui") return say(ctx, workers.map(row).join("\n"));
	const chosen = await root.dialog(ctx.ui.select("Subagents", workers.map(row)));
	const found = workers[workers.map(row).indexOf(chosen ?? "")];
	if (!found) return;
	// Only its own children may the root talk to and stop; it may look at all.
	const verbs = ["View its conversation", ...(found.lead ? [] : ["Message it", ...(found.state === "ended" ? [] : ["Stop it"])])];
	const verb = await root.dialog(ctx.ui.select(visibleLine(found.name), verbs));
	if (verb === verbs[0]) return view(root, found, ctx);
	if (verb === "Stop it") return stop(root, [found.name], ctx);
	if (verb !== "Message it") return;
	const text = await root.dialog(ctx.ui.input(`Message to ${visibleLine(found.name)}`));
	if (text?.trim()) await message(root, found.name, text, ctx);
}

function row(worker: WorkerStatus): string {
	const indent = "  ".repeat(Math.max(0, worker.depth - 1));
	const state = worker.outcome ? outcomeText(worker.outcome) : worker.state;
	return `${indent}${visibleLine(worker.name)}  ${visibleLine(state)}${worker.place ? ` (place ${worker.place})` : ""}`;
}

function worker(root: Root, name: string): WorkerStatus {
	const found = root.tree.workers.find((one) => one.name === name);
	if (!found) throw new Error(`there is no subagent called ${name}`);
	return found;
}

async function view(root: Root, found: WorkerStatus, ctx: ExtensionCommandContext): Promise<void> {
	const text = conversationText(join(root.conversations(), `${found.worker}.jsonl`));
	// What is typed there goes nowhere: the file has one writer.
	if (ctx.mode === "tui") await root.dialog(ctx.ui.editor(`${visibleLine(found.name)} (a copy: Escape closes it)`, text));
	else say(ctx, text);
}

async function message(root: Root, name: string, text: string, ctx: ExtensionCommandContext): Promise<void> {
	const { sent } = await root.call("message", { request_id: requestId(), name, text });
	say(ctx, sent.status === "resumed" ? `${name} goes on with it` : `Sent to ${name}`);
}

async function stop(root: Root, names: string[], ctx: ExtensionCommandContext): Promise<void> {
	if (names.length === 0) return say(ctx, `Stopped ${await root.interrupt()} subagents`);
	const reply = await root.call("stop", { request_id: requestId(), names });
	say(ctx, reply.workers.map((one) => `${one.name}: ${one.result === "stopped" ? "stopped" : "had ended already"}`).join("\n"));
}

function say(ctx: ExtensionCommandContext, text: string, type: "info" | "error" = "info"): void {
	const shown = visible(text);
	if (ctx.hasUI) ctx.ui.notify(shown, type);
	else console.error(shown);
}
