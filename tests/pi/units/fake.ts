/** As much of Pi as deliveries see: what it was handed, and a session with entries. */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { TOOL_NAMES } from "../../../client/pi/launch.ts";
import type { Item } from "../../../client/pi/protocol.ts";

export interface Handed {
	customType: string;
	content: string;
	details: { roost: { id: string; keys: string[] } };
}

export class FakePi {
	readonly handed: Handed[] = [];
	readonly entries: { type: string; customType?: string; details?: unknown; data?: unknown }[] = [];
	readonly handlers: Record<string, (event: unknown, ctx: unknown) => void> = {};
	tools = ["read", ...TOOL_NAMES];
	onHanded: (() => void) | undefined;
	readonly api = {
		sendMessage: (message: Handed) => {
			this.handed.push(message);
			this.onHanded?.();
		},
		on: (event: string, handler: (event: unknown, ctx: unknown) => void) => void (this.handlers[event] = handler),
		getActiveTools: () => this.tools,
		setActiveTools: (tools: string[]) => void (this.tools = tools),
		getSessionName: () => "s",
		appendEntry: (customType: string, data: unknown) => void this.entries.push({ type: "custom", customType, data }),
	} as unknown as ExtensionAPI;
	readonly ctx = { isIdle: () => true, getContextUsage: () => undefined, sessionManager: { getEntries: () => this.entries, getSessionId: () => "s", getSessionFile: () => undefined } } as unknown as ExtensionContext;
}

export const completion = (seq: number, execution: string): Item & { type: "completion" } =>
	({ seq, type: "completion", name: "a", worker: "w1", execution, job: "j1", task_index: 0, outcome: { status: "completed" }, answer: "R", answer_bytes: 1, answer_truncated: false, partial: false });
export const message = (seq: number, id: string): Item => ({ seq, type: "lead_message", message: id, text: "m" });
export const delivery = (...items: Item[]) => ({ wake: true, active_children: 1, items });
/** After what was put off with `setImmediate`. */
export const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
