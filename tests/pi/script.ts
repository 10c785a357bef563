/**
 * What the model of the tests does, from the texts in its conversation alone.
 *
 * The last message of the user with a line `DO [step, ...]` is the script; each answer of the model is its next step. A message that
 * comes after the last step is answered with what was heard, or with the steps of the script's line `LATER [step, ...]`, round and round.
 */
import * as fs from "node:fs";
import { dirname } from "node:path";

export type Step =
	/** Calls these tools at once. */
	| { call: [string, Record<string, unknown>][] }
	/** Answers. `$ANSWERS` is what subagents have answered so far, in the order of their names; `$TURNS` the messages of the user. */
	| { say: string; stop?: "stop" | "length" | "aborted"; times?: number }
	/** Fails, this many times (default: always). */
	| { fail: string; times?: number }
	/** Answers once the file is there. */
	| { until: string; say: string };

export interface Said {
	role: string;
	content: string | { type: string; text?: string }[];
}

export const textOf = (message: Said): string =>
	typeof message.content === "string" ? message.content : message.content.map((part) => part.text ?? "").join("");

export function stepFor(messages: Said[]): Step {
	// Pi asks for a summary of the conversation: a compaction.
	if (/<conversation>|^# Conversation/.test(textOf(messages.at(-1) as Said))) {
		const gate = process.env.FAUX_SUMMARY_GATE;
		return gate ? { until: gate, say: "SUMMARY" } : { say: "SUMMARY" };
	}
	const at = messages.findLastIndex((message) => message.role === "user" && /^DO /m.test(scriptText(message)));
	const done = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
	if (at < 0) return { say: `heard: ${textOf(messages.at(-1) as Said)}` };
	const text = scriptText(messages[at] as Said);
	const steps = script(text, "DO");
	if (done < steps.length) return steps[done] as Step;
	const later = script(text, "LATER");
	return later[(done - steps.length) % Math.max(1, later.length)] ?? { say: `heard: ${textOf(messages.at(-1) as Said)}` };
}

/** `SCRIPT path` stands for what is in that file: a terminal is typed into slowly. */
function scriptText(message: Said): string {
	const text = textOf(message);
	const path = /^SCRIPT (\S+)/.exec(text)?.[1];
	return path ? fs.readFileSync(path, "utf8") : text;
}

function script(text: string, word: string): Step[] {
	const line = text.split("\n").find((one) => one.startsWith(`${word} `));
	return line ? (JSON.parse(line.slice(word.length + 1)) as Step[]) : [];
}

export function filled(text: string, messages: Said[]): string {
	const users = messages.filter((message) => message.role !== "assistant" && message.role !== "system").map(textOf);
	const answers = users.flatMap((said) => [...said.matchAll(/^\[subagent (\S+) completed\]\n(.*)$/gm)].map((match) => `${match[1]}=${match[2]}`));
	return text.replace("$ANSWERS", [...new Set(answers)].sort().join(",")).replace("$TURNS", String(users.length));
}

/** An event, no poll: the folder is watched. */
export function exists(path: string, signal: AbortSignal | undefined): Promise<void> {
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
