/** How receipts and completions look, collapsed and expanded. It owns nothing that it shows. */
import type { Theme } from "@earendil-works/pi-coding-agent";
import { Text } from "@earendil-works/pi-tui";
import type { SingleResult } from "./contracts.ts";
import { isSubagentDetails } from "./details.ts";
import { isSuccess, outcomeText } from "./outcome.ts";
import { visible, visibleLine } from "./visible.ts";

const PREVIEW_CHARS = 100;

export function renderReceipt(result: { content: readonly { type: string; text?: string }[]; details: unknown }, expanded: boolean, theme: Theme): Text {
	const text = visible(contentText(result.content));
	if (expanded || !isSubagentDetails(result.details)) return new Text(text, 0, 0);
	return new Text(result.details.results.map((one) => row(one as SingleResult, theme)).join("\n"), 0, 0);
}

/** A completion: one line for each result, or all of its text. */
export function renderCompletion(message: { content: unknown; details?: unknown }, expanded: boolean, theme: Theme): Text {
	const text = visible(contentText(message.content));
	const results = isSubagentDetails(message.details) ? (message.details.results as SingleResult[]) : [];
	if (expanded || results.length === 0) return new Text(expanded ? text : firstLine(text, PREVIEW_CHARS), 1, 0);
	return new Text(results.map((one) => row(one, theme)).join("\n"), 1, 0);
}

function row(result: SingleResult, theme: Theme): string {
	const { outcome } = result;
	const name = visibleLine(result.name);
	if (!outcome) return `${theme.fg("dim", "○")} ${name} ${theme.fg("dim", firstLine(result.task, PREVIEW_CHARS))}`;
	const mark = isSuccess(outcome) ? theme.fg("success", "✓") : theme.fg("error", "✗");
	const said = isSuccess(outcome) ? result.finalOutput : outcomeText(outcome);
	return `${mark} ${name} ${theme.fg("dim", firstLine(said, PREVIEW_CHARS))}`;
}

/** One line, with what would move the cursor made visible. */
export function firstLine(text: string, chars: number): string {
	const line = visibleLine(text.trim().split("\n")[0] ?? "");
	return line.length > chars ? `${line.slice(0, chars - 1)}…` : line;
}

function contentText(content: unknown): string {
	if (typeof content === "string") return content;
	return (content as { text?: string }[]).map((part) => part.text ?? "").join("");
}
