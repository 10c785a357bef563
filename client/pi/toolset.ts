/** Which of the tools are shown: only those that can work here, and none that the user has not allowed. */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { TOOL_NAMES } from "./launch.ts";

export interface Powers {
	/** Places of the budget that are left. */
	budget: number;
	/** Whether it has ever started a subagent. */
	hasChildren: boolean;
	hasLead: boolean;
}

/** Before it is known what there is. */
export const NO_POWERS: Powers = { budget: 0, hasChildren: false, hasLead: false };

export class Toolset {
	private readonly pi: ExtensionAPI;
	/** Ours that are allowed: `--tools` of the user may leave some out. */
	private allowed: string[] | undefined;
	private shown = "";

	constructor(pi: ExtensionAPI) {
		this.pi = pi;
	}

	/** A reload takes the tools that are active then for those that are allowed. */
	showAll(): void {
		const active = this.pi.getActiveTools();
		this.pi.setActiveTools([...new Set([...active, ...(this.allowed ?? [])])]);
	}

	show(powers: Powers): void {
		const active = this.pi.getActiveTools();
		this.allowed ??= active.filter((name) => TOOL_NAMES.includes(name));
		const wanted = this.allowed.filter((name) => works(name, powers));
		const key = wanted.join();
		const others = active.filter((name) => !TOOL_NAMES.includes(name));
		if (key === this.shown && others.length + wanted.length === active.length) return;
		this.shown = key;
		this.pi.setActiveTools([...others, ...wanted]);
	}
}

function works(name: string, { budget, hasChildren, hasLead }: Powers): boolean {
	if (name === "message_lead_agent") return hasLead;
	if (name === "subagents") return budget > 0;
	return budget > 0 || hasChildren;
}
