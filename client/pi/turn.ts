/** What a run of the agent has said and how it ended, from Pi's messages. Pure. */
import type { TurnEnd } from "./protocol.ts";

/** The part of an assistant message that counts here. */
export interface AssistantSaid {
	content: readonly { type: string; text?: string }[];
	stopReason: string;
	errorMessage?: string;
}

/** What Pi 0.84.2 calls an error when a run was aborted inside of a tool. */
const ABORTED = ["This operation was aborted", "Request was aborted", "Request was aborted."];

export function textOf(message: AssistantSaid): string {
	return message.content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
}

export function endedBadly(message: unknown): boolean {
	const { stopReason } = message as Partial<AssistantSaid>;
	return stopReason === "error" || stopReason === "aborted";
}

/** The answer of a run, which is that of its last message, and how it ended. Without a message there is neither. */
export function turnEnd(last: AssistantSaid | undefined): { answer?: string; ended: TurnEnd } {
	if (!last) return { ended: {} };
	const text = textOf(last);
	const answer = text.trim() === "" ? {} : { answer: text };
	switch (last.stopReason) {
		case "length":
			return { ...answer, ended: { truncated: true } };
		case "aborted":
			return { ...answer, ended: { aborted: true } };
		case "error": {
			const message = last.errorMessage || "the model's provider failed without a word";
			return { ...answer, ended: ABORTED.includes(message) ? { aborted: true } : { error: { kind: "provider", message } } };
		}
		default:
			return { ...answer, ended: {} };
	}
}
