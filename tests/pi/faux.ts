/**
 * A model that does what the texts in its conversation say (`script.ts`), for tests: Pi's own faux provider. It is loaded into every Pi
 * of a tree.
 */
import * as fs from "node:fs";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { exists, filled, stepFor, textOf } from "./script.ts";
import type { Said, Step } from "./script.ts";

const failures = new Map<string, number>();

export default function faux(pi: ExtensionAPI): void {
	const window = Number(process.env.FAUX_WINDOW ?? 128_000);
	const provider = fauxProvider({ provider: "faux", models: [
		{ id: "faux-1", contextWindow: window, maxTokens: 4096 },
		{ id: "faux-short", contextWindow: window, maxTokens: 4 },
		{ id: "faux-thinks", contextWindow: window, maxTokens: 4096, reasoning: true },
	] });
	const answer = async (context: { messages: unknown[] }, options: { signal?: AbortSignal; reasoning?: string } | undefined) => {
		provider.appendResponses([answer as never]);
		const messages = context.messages as Said[];
		if (process.env.FAUX_LOG) fs.appendFileSync(process.env.FAUX_LOG, `${JSON.stringify({ pid: process.pid, worker: process.env.ROOST_WORKER, thinking: options?.reasoning, messages: messages.map((m) => [m.role, textOf(m)]) })}\n`);
		return await perform(stepFor(messages), messages, options?.signal);
	};
	provider.setResponses([answer as never]);
	pi.registerProvider(provider.provider);
}

async function perform(step: Step, messages: Said[], signal: AbortSignal | undefined) {
	if ("call" in step) return fauxAssistantMessage(step.call.map(([name, args]) => fauxToolCall(name, args as never)), { stopReason: "toolUse" });
	if ("fail" in step) {
		const key = JSON.stringify(step);
		const failed = failures.get(key) ?? 0;
		failures.set(key, failed + 1);
		if (step.times === undefined || failed < step.times) return fauxAssistantMessage([], { stopReason: "error", errorMessage: step.fail });
		return fauxAssistantMessage([fauxText("recovered")]);
	}
	if ("until" in step) await exists(step.until, signal);
	return fauxAssistantMessage([fauxText(filled(step.say, messages).repeat("times" in step ? (step.times ?? 1) : 1))], { stopReason: "stop" in step ? (step.stop ?? "stop") : "stop" });
}
