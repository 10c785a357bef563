/** The tools that a model has: what they take, the call that each makes, and what they answer with. They know no socket. */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";
import { Refused, requestId } from "./connection.ts";
import type { SubagentDetails } from "./contracts.ts";
import { detailsFrom, launchedDetails, singleResult } from "./details.ts";
import { submitter, taskOf } from "./launch.ts";
import type { TaskAsked } from "./launch.ts";
import type { MessageReply, ReadResult, Receipt } from "./protocol.ts";
import { renderReceipt } from "./render.ts";
import type { Role } from "./role.ts";
import * as texts from "./texts.ts";

export const TASKS_MAX = 20;

const TASK = Type.Object({
	task: Type.String({ minLength: 1, description: "All that the subagent is told. It sees nothing of this conversation." }),
	name: Type.Optional(Type.String({ description: "A name of its own, unique in this session, to message or stop it by." })),
	model: Type.Optional(Type.String({ description: "provider/id of another model than yours." })),
	thinking: Type.Optional(Type.String({ description: "Another thinking level than yours: off, minimal, low, medium, high, xhigh." })),
	tools: Type.Optional(Type.Array(Type.String(), { description: "The only tools that it has, beside those for subagents: some of yours. Default: all of yours." })),
	cwd: Type.Optional(Type.String({ description: "Its working directory." })),
	max_subagents_allowed: Type.Optional(Type.Integer({ minimum: 0, description: "How many subagents it may start, with all that those start. Default 0." })),
	timeout_seconds: Type.Optional(Type.Number({ minimum: 1, description: "It is ended when it takes longer." })),
});

type Answer = { content: { type: "text"; text: string }[]; details: SubagentDetails | Record<string, never>; terminate?: boolean };

const said = (text: string, details: SubagentDetails | Record<string, never> = {}): Answer => ({ content: [{ type: "text", text }], details });

export function registerTools(pi: ExtensionAPI, role: () => Role): void {
	pi.registerTool({
		name: "subagents", label: "Subagents", description: texts.getSubagentsToolDescription(TASKS_MAX),
		promptSnippet: texts.SUBAGENTS_SNIPPET, promptGuidelines: texts.GUIDELINES,
		parameters: Type.Object({
			tasks: Type.Array(TASK, { minItems: 1, maxItems: TASKS_MAX }),
			foreground: Type.Optional(Type.Boolean({ description: "Return the results instead of a receipt." })),
		}),
		execute: (_id, { tasks, foreground }, signal, _onUpdate, ctx) => launch(pi, role(), tasks, foreground ?? false, signal, ctx),
		renderResult: (result, { expanded }, theme) => renderReceipt(result, expanded, theme),
	});
	pi.registerTool({
		name: "message_subagent", label: "Message subagent", description: texts.MESSAGE_SUBAGENT,
		parameters: Type.Object({
			name: Type.String(), message: Type.String({ minLength: 1 }),
			max_subagents_allowed: Type.Optional(Type.Integer({ minimum: 0, description: "Raises how many subagents it may start." })),
		}),
		execute: (_id, { name, message, max_subagents_allowed }, signal) => clear(async () => {
			const allowed = max_subagents_allowed === undefined ? {} : { max_subagents_allowed };
			return said(sentText(name, await role().call("message", { request_id: requestId(), name, text: message, ...allowed }, signal)));
		}),
	});
	pi.registerTool({
		name: "stop_subagent", label: "Stop subagent", description: texts.STOP_SUBAGENT,
		parameters: Type.Object({ name: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]) }),
		execute: (_id, { name }, signal) => clear(() => stop(role(), typeof name === "string" ? [name] : name, signal)),
	});
	pi.registerTool({
		name: "get_subagent_result", label: "Subagent result", description: texts.GET_RESULT,
		parameters: Type.Object({
			name: Type.String(), wait: Type.Optional(Type.Boolean()), verbose: Type.Optional(Type.Boolean()),
			timeout_seconds: Type.Optional(Type.Number({ minimum: 1, description: "With wait: how long at most." })),
		}),
		execute: (_id, { name, wait, verbose, timeout_seconds }, signal) =>
			clear(() => read(role(), { name, ...(timeout_seconds ? { timeout_ms: Math.round(timeout_seconds * 1000) } : {}) }, wait ?? false, verbose ?? false, signal)),
	});
}

/** Only a worker has a lead. */
export function registerLeadTool(pi: ExtensionAPI, role: () => Role): void {
	pi.registerTool({
		name: "message_lead_agent", label: "Message lead", description: texts.MESSAGE_LEAD,
		parameters: Type.Object({ message: Type.String({ minLength: 1 }) }),
		execute: (_id, { message }, signal) => clear(async () => {
			await role().call("tell_lead", { request_id: requestId(), text: message }, signal);
			return said("Sent.");
		}),
	});
}

function launch(pi: ExtensionAPI, role: Role, asked: TaskAsked[], foreground: boolean, signal: AbortSignal | undefined, ctx: ExtensionContext): Promise<Answer> {
	return clear(async () => {
		const tasks = asked.map((task) => taskOf(task, pi, ctx));
		const generation = role.generation();
		const params = {
			request_id: requestId(), tasks, submitter: submitter(ctx), foreground, ...(generation === undefined ? {} : { generation }),
		};
		if (!foreground) {
			const receipt = await role.call("launch", params, signal);
			const details = launchedDetails(receipt, asked.map(({ task }) => task));
			role.launched();
			return said(texts.receiptText(receipt), details);
		}
		const waited = await role.wait("launch", params, signal);
		if ("parked" in waited) return { ...said(texts.PARKED), terminate: true };
		return inline(role, waited.answer, asked.map(({ task }) => task));
	});
}

function inline(role: Role, receipt: Receipt, tasks: string[]): Answer {
	const results = receipt.results ?? [];
	role.consumed(results.map((result) => result.execution));
	const details = detailsFrom(results.map((result) => singleResult(result, tasks[result.task_index])));
	role.launched();
	role.ended(results);
	return said(texts.foregroundText(results), details);
}

async function read(role: Role, asked: ReadResult, wait: boolean, verbose: boolean, signal: AbortSignal | undefined): Promise<Answer> {
	const waited = wait
		? await role.wait("result", { ...asked, wait: true, request_id: requestId() }, signal)
		: { answer: await role.call("result", asked, signal) };
	if ("parked" in waited) return { ...said(texts.PARKED), terminate: true };
	const reply = waited.answer;
	if ("active" in reply) return said(texts.readText(reply, verbose));
	role.consumed([reply.ended.execution]);
	role.ended([reply.ended]);
	return said(texts.readText(reply, verbose), detailsFrom([singleResult(reply.ended)]));
}

async function stop(role: Role, names: string[], signal: AbortSignal | undefined): Promise<Answer> {
	return said(texts.stopText(await role.call("stop", { request_id: requestId(), names }, signal)));
}

function sentText(name: string, { sent }: MessageReply): string {
	switch (sent.status) {
		case "steering": return `Sent; ${name} reads it during its work.`;
		case "after_end": return `Sent; ${name} is just ending and goes on with it.`;
		case "resumed":
			return `${name} goes on from its saved conversation with it (${sent.placement === "started" ? "started" : `queued at place ${sent.place ?? "?"}`}, job ${sent.job}). Its result arrives as a message.`;
	}
}

/** A refusal with its kind, so that a model can tell them apart; thrown, for that is how a tool of Pi fails. */
async function clear(work: () => Promise<Answer>): Promise<Answer> {
	try {
		return await work();
	} catch (error) {
		if (error instanceof Refused) throw new Error(`${error.kind}: ${error.message}`);
		throw error;
	}
}
