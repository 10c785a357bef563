/**
 * The events of the tree under the names that other extensions know, on Pi's own bus: observations, in the order of the tree's one
 * stream, each with its number. Nothing is decided by them.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { recordOf } from "./details.ts";
import { isSuccess, outcomeText } from "./outcome.ts";
import type { NumberedEvent } from "./protocol.ts";

type Named = { id: string; type: string; description: string } & Record<string, unknown>;

export function emitLifecycle(pi: ExtensionAPI, event: NumberedEvent): void {
	const found = named(event);
	if (found) pi.events.emit(`subagents:${found[0]}`, { ...found[1], number: event.number });
}

function named(event: NumberedEvent): [string, Named] | undefined {
	switch (event.event) {
		case "created": return ["created", { ...who(event), job: event.job, taskIndex: event.task_index, resume: event.resume }];
		case "queued":
		case "started":
		case "waiting":
		case "parked":
		case "woken": return [event.event, who(event)];
		case "message": return event.to ? ["steered", { id: event.to, type: "pi", description: "", message: event.message }] : undefined;
		case "ended": {
			const good = isSuccess(event.outcome);
			const total = event.usage?.total;
			const usage = total ? { usage: recordOf(total), toolUses: total.tool_calls, tokens: { input: total.input, output: total.output, total: total.input + total.output } } : {};
			const status = event.outcome.status;
			return [good ? "completed" : "failed", { ...who(event), status, ...(good ? {} : { error: outcomeText(event.outcome) }), ...usage }];
		}
		default: return undefined;
	}
}

function who(event: { name: string; worker: string; execution: string }): Named {
	return { id: event.worker, type: "pi", description: event.name, name: event.name, execution: event.execution };
}
