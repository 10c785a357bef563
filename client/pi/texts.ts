/**
 * All words that a model reads: descriptions of the tools, and frames around what subagents and leads say. No advice to poll in any
 * of them.
 */
import { outcomeText, isSuccess } from "./outcome.ts";
import type { Owed } from "./inbox.ts";
import type { Receipt, ResultReply, StopReply, WorkerResult } from "./protocol.ts";

const WAITING = "When you need their results before you can go on, end your turn: each result arrives as a message of its own and wakes you. "
	+ "Do not sleep, and do not ask again and again.";

/** What the model is told of the tool that launches. */
export function getSubagentsToolDescription(tasksMax = 20): string {
	return `Start subagents: agents of their own, each with a fresh conversation that begins with its task text and nothing else. Up to ${tasksMax} tasks in one call; `
		+ "more than may run at a time wait in a queue. Returns at once with a receipt, which is not a result. "
		+ WAITING
		+ " With foreground: true the call itself returns the results instead. A task reserves one place of your budget and those of its own max_subagents_allowed "
		+ "(default 0: it starts none); places are not given back.";
}

export const MESSAGE_SUBAGENT = "Send a message to one of your own subagents by name. A running one reads it during its work; one that has finished goes on from its saved "
	+ "conversation with it. Returns without waiting for an answer, which arrives as a message when there is one. Fails while the subagent is parked "
	+ "(put away until its own subagents have ended): it goes on by itself.";
export const STOP_SUBAGENT = "Stop one or several of your own subagents by name, with everything that they have started. Frees their places in the queue, not their budget. "
	+ "No completion message follows for what you stop.";
export const MESSAGE_LEAD = "Send a message to the agent that started you: progress, a question, a finding. Not your result, which is the last message of your work. "
	+ "Returns without waiting for an answer. Fails while that agent is parked.";
export const GET_RESULT = "Read the whole result of one of your own subagents by name. Results arrive by themselves as messages, so this is for reading one again, or in full when it was cut. "
	+ "With wait: true the call returns when the subagent has finished; a result that was read this way is not announced again. verbose: true adds its usage and ids.";

export const SUBAGENTS_SNIPPET = "Start subagents that work on their own; results arrive as messages";
export const GUIDELINES = [
	"After starting subagents, do other work or end your turn and wait: their results arrive as messages and wake you. Never use bash sleep or polling loops to wait for subagents.",
];

export function receiptText(receipt: Receipt): string {
	const lines = receipt.tasks.map((task) => {
		const queued = task.place ? `queued at place ${task.place}${task.reason ? ` (${task.reason})` : ""}` : "queued";
		return `- ${task.name}: ${task.status === "started" ? "started" : queued}`;
	});
	const warnings = (receipt.warnings ?? []).map((warning) => `Note: ${warning}`);
	return [`Job ${receipt.job}. This is a receipt, not a result.`, ...lines, ...warnings, WAITING].join("\n");
}

export function foregroundText(results: readonly WorkerResult[]): string {
	return results.map(resultText).join("\n\n");
}

/** The whole result of one subagent. */
export function resultText(result: WorkerResult): string {
	const marks = [result.partial ? "what it had written until then" : "", result.length_limited ? "cut at the length limit of its model" : ""];
	const marked = marks.filter(Boolean).map((mark) => `; ${mark}`).join("");
	const cut = result.answer_truncated ? `\n[${result.answer_bytes} bytes in all; the whole text is in ${result.answer_path ?? "its output file"}]` : "";
	return `[subagent ${result.name} ${outcomeText(result.outcome)}${marked}]\n${result.answer}${cut}`;
}

/** Everything that enters the conversation at once. */
export function itemsText(items: readonly Owed[]): string {
	if (items.length === 0) return "[None of your subagents is active any more.]";
	return items.map(itemText).join("\n\n");
}

function itemText(item: Owed): string {
	switch (item.type) {
		case "task":
		case "answer": return item.text;
		case "completion": return resultText(item);
		case "lead_message": return `[message from your lead]\n${item.text}`;
		case "child_message": return `[message from subagent ${item.from}; not its result]\n${item.text}`;
		case "notice": return `[subagent ${item.from}: Idle, waiting for children. Not its result.]\n${item.text}`;
		case "undelivered": return `[your message to ${item.to} was not read: ${item.reason}]\n${item.text}`;
	}
}

export function readText(reply: ResultReply, verbose: boolean): string {
	if ("active" in reply) {
		const { name, state, timed_out } = reply.active;
		return `Subagent ${name} has no result yet: ${state}${timed_out ? ", and the time that you gave is over" : ""}. Its result arrives as a message.`;
	}
	const { ended } = reply;
	if (!verbose) return resultText(ended);
	const used = ended.usage?.total;
	const counted = used ? `${used.input + used.cache_read + used.cache_write} tokens in, ${used.output} out, ${used.turns} turns, ${used.tool_calls} tool calls` : "usage unknown";
	const ids = `worker ${ended.worker}, execution ${ended.execution}, job ${ended.job} task ${ended.task_index}`;
	return `${resultText(ended)}\n\n[${ids}; ${counted}${isSuccess(ended.outcome) ? "" : "; not a success"}]`;
}

export function stopText(reply: StopReply): string {
	return reply.workers.map(({ name, result }) => `${name}: ${result === "stopped" ? "stopped" : "had ended already"}`).join("\n");
}

export const PARKED = "This call goes on while you are put away: its results arrive as a message. End your turn now.";
