/** A worker's conversation for a person to read, from its file, when somebody asks for it. */
import { readFileSync } from "node:fs";
import { visible } from "./visible.ts";

interface Entry {
	type: string;
	customType?: string;
	content?: unknown;
	message?: { role: string; content: unknown; toolName?: string; errorMessage?: string };
}

export function conversationText(path: string): string {
	const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
	return visible(lines.flatMap((line) => {
		try {
			return entryText(JSON.parse(line) as Entry);
		} catch {
			// The last line of a worker that is writing.
			return [];
		}
	}).join("\n\n"));
}

function entryText(entry: Entry): string[] {
	if (entry.type === "custom_message") return [`> ${partsText(entry.content)}`];
	if (entry.type === "compaction") return ["(the conversation before this was summed up)"];
	const { message } = entry;
	if (entry.type !== "message" || !message || message.role === "system") return [];
	const text = partsText(message.content);
	if (message.role === "user") return [`> ${text}`];
	if (message.role === "toolResult") return [`[${message.toolName}] ${text}`];
	return [message.errorMessage ? `${text} (${message.errorMessage})` : text];
}

function partsText(content: unknown): string {
	if (typeof content === "string") return content;
	const parts = (content ?? []) as { type: string; text?: string; name?: string; arguments?: unknown }[];
	return parts.map((part) => (part.type === "toolCall" ? `→ ${part.name} ${JSON.stringify(part.arguments)}` : (part.text ?? ""))).filter(Boolean).join("\n");
}
