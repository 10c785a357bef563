/** Ties a root to Pi: events, tools, commands and surfaces. */
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE } from "./contracts.ts";
import { serveBus } from "./bus.ts";
import { registerCommands } from "./commands.ts";
import { emitLifecycle } from "./lifecycle.ts";
import { renderCompletion } from "./render.ts";
import { Root } from "./root.ts";
import type { RootOptions } from "./root.ts";
import type { DeliveryMode, Settings } from "./protocol.ts";
import { Surfaces } from "./surfaces.ts";
import { registerTools } from "./tools.ts";
import { endedBadly } from "./turn.ts";
import { visibleLine } from "./visible.ts";

export function runRoot(pi: ExtensionAPI): void {
	let root: Root | undefined;
	let surfaces: Surfaces | undefined;
	let endBus: (() => void) | undefined;
	const current = (): Root => {
		if (!root) throw new Error("subagents are off: there is no session yet");
		return root;
	};
	const options: RootOptions = {
		settings: () => settings(pi),
		onChange: () => surfaces?.update(),
		onEvent: (event) => emitLifecycle(pi, event),
		onTrouble: trouble,
	};
	pi.registerFlag("subagent-cap", { type: "string", description: "Most subagents that run at a time" });
	pi.registerFlag("subagent-budget", { type: "string", description: "Most subagents that may ever be started in this session" });
	pi.registerFlag("subagent-delivery", { type: "string", description: "How results arrive: steer, follow_up, next_turn, passive" });
	registerTools(pi, current);
	registerCommands(pi, current);
	for (const type of [SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE])
		pi.registerMessageRenderer(type, (message, { expanded }, theme) => renderCompletion(message, expanded, theme));
	pi.on("session_start", async (_event, ctx) => {
		// Pi may say twice that a session has started.
		if (root) return;
		const begun = new Root(pi, options);
		root = begun;
		surfaces = new Surfaces(begun, ctx);
		await begun.begin(ctx);
		// The session may have ended meanwhile.
		if (root !== begun) return;
		endBus = serveBus(pi, begun, ctx);
		surfaces.update();
	});
	pi.on("session_shutdown", async (event) => {
		const ending = root;
		root = undefined;
		endBus?.();
		surfaces?.end();
		surfaces = undefined;
		// Only a reload goes on with the same session.
		await ending?.end(event.reason !== "reload");
	});
	listen(pi, () => root);
	for (const event of ["agent_start", "agent_settled"] as const) pi.on(event as "agent_start", () => surfaces?.update());
}

function listen(pi: ExtensionAPI, root: () => Root | undefined): void {
	pi.on("agent_start", () => root()?.deliveries.agentStart());
	pi.on("message_start", () => root()?.deliveries.tick());
	pi.on("message_end", (event) => root()?.deliveries.messageEnd(event.message as { role: string; details?: unknown }));
	pi.on("tool_execution_start", () => root()?.deliveries.tick());
	pi.on("agent_end", () => root()?.deliveries.tick());
	pi.on("agent_settled", (_event, ctx) => root()?.deliveries.agentSettled(ctx));
	pi.on("session_before_compact", (event) => {
		if (event.reason === "manual") root()?.deliveries.compactionBegin();
	});
	// The second one is known to newer versions alone; to others it is a name that is never heard.
	for (const event of ["session_compact", "session_compact_failed"]) pi.on(event as "session_compact", () => root()?.deliveries.compactionEnd());
	pi.on("before_agent_start", () => {
		const message = root()?.deliveries.nextTurn();
		return message ? { message } : undefined;
	});
	pi.on("turn_end", async (event, ctx) => {
		const lead = root();
		if (!lead) return;
		const goesOn = (event.toolResults ?? []).length > 0;
		// A run that ends badly looks for no steering: what is owed comes when it has settled.
		if (endedBadly(event.message)) return lead.deliveries.tick();
		// Nobody types in these modes, and the process leaves with the run: the run waits.
		if (!goesOn && (ctx.mode === "print" || ctx.mode === "json")) {
			await lead.tree.look(ctx.signal).catch(() => {});
			await lead.deliveries.arrives(() => lead.isExpecting(), ctx.signal);
		}
		lead.deliveries.turnEnd(goesOn);
	});
}

function settings(pi: ExtensionAPI): Partial<Settings> {
	const number = (flag: string): number | undefined => {
		const value = Number(pi.getFlag(flag));
		return Number.isSafeInteger(value) && value > 0 ? value : undefined;
	};
	const cap = number("subagent-cap");
	const budget = number("subagent-budget");
	const delivery = pi.getFlag("subagent-delivery") as DeliveryMode | undefined;
	return { ...(cap ? { cap } : {}), ...(budget ? { budget } : {}), ...(delivery ? { delivery } : {}) };
}

function trouble(line: string, ctx: ExtensionContext): void {
	const shown = visibleLine(line);
	if (ctx.hasUI) ctx.ui.notify(shown, "error");
	else console.error(shown);
}
