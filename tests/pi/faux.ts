/**
 * A model that does what the texts in its conversation say, for tests: Pi's own faux provider. It is loaded into every Pi of a tree.
 *
 * The last message of the user with a line `DO [step, ...]` is the script; each answer of the model is its next step. A message that
 * comes after the last step is answered with `said`, or with the script's `LATER [step, ...]` once more from its beginning.
 */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export type Step =
	/** Calls these tools at once. */
	| { call: [string, Record<string, unknown>][] }
	/** Answers. `$ANSWERS` is what subagents have answered so far, in the order of their names; `$TURNS` the messages of the user. */
	| { say: string; stop?: "stop" | "length" | "aborted"; times?: number }
	/** Fails, this many times (default: always). */
	| { fail: string; times?: number }
	/** Answers once the file is there. */
	| { until: string; say: string };

interface Said {
	role: string;
	content: string | { type: string; text?: string }[];
}

const textOf = (message: Said): string =>
	typeof message.content === "string" ? message.content : message.content.map((part) => part.text ?? "").join("");

const failures = new Map<string, number>();

export default function faux(pi: ExtensionAPI): void {
	const window = Number(process.env.FAUX_WINDOW ?? 128_000);
	const provider = fauxProvider({ provider: "faux", models: [
		{ id: "faux-1", contextWindow: window, maxTokens: 4096 },
		{ id: "faux-short", contextWindow: window, maxTokens: 4 },
	] });
	const answer = async (context: { messages: unknown[] }, options: { signal?: AbortSignal } | undefined) => {
		provider.appendResponses([answer as never]);
		const messages = context.messages as Said[];
		if (process.env.FAUX_LOG) fs.appendFileSync(process.env.FAUX_LOG, `${JSON.stringify({ pid: process.pid, worker: process.env.ROOST_WORKER, messages: messages.map((m) => [m.role, textOf(m)]) })}\n`);
		return await perform(stepFor(messages), messages, options?.signal);
	};
	provider.setResponses([answer as never]);
	pi.registerProvider(provider.provider);
}

function stepFor(messages: Said[]): Step {
	// Pi asks for a summary of the conversation: a compaction.
	if (textOf(messages.at(-1) as Said).includes("<conversation>")) {
		const gate = process.env.FAUX_SUMMARY_GATE;
		return gate ? { until: gate, say: "SUMMARY" } : { say: "SUMMARY" };
	}
	const at = messages.findLastIndex((message) => message.role === "user" && /^DO /m.test(textOf(message)));
	const done = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
	if (at < 0) return { say: `heard: ${textOf(messages.at(-1) as Said)}` };
	const text = textOf(messages[at] as Said);
	const steps = script(text, "DO");
	if (done < steps.length) return steps[done] as Step;
	const later = script(text, "LATER");
	return later[(done - steps.length) % Math.max(1, later.length)] ?? { say: `heard: ${textOf(messages.at(-1) as Said)}` };
}

function script(text: string, word: string): Step[] {
	const line = text.split("\n").find((one) => one.startsWith(`${word} `));
	return line ? (JSON.parse(line.slice(word.length + 1)) as Step[]) : [];
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

function filled(text: string, messages: Said[]): string {
	const users = messages.filter((message) => message.role !== "assistant" && message.role !== "system").map(textOf);
	const answers = users.flatMap((said) => [...said.matchAll(/^\[subagent (\S+) completed\]\n(.*)$/gm)].map((match) => `${match[1]}=${match[2]}`));
	return text.replace("$ANSWERS", [...new Set(answers)].sort().join(",")).replace("$TURNS", String(users.length));
}

/** An event, no poll: the folder is watched. */
function exists(path: string, signal: AbortSignal | undefined): Promise<void> {
	return new Promise((resolve, reject) => {
		const watcher = fs.watch(dirname(path), () => look());
		const end = (then: () => void) => {
			watcher.close();
			then();
		};
		const look = () => fs.existsSync(path) && end(resolve);
		signal?.addEventListener("abort", () => end(() => reject(new Error("Request was aborted"))), { once: true });
		look();
	});
}
