/**
 * Subagents for Pi, run by Roost. Loaded by Pi as source. As the root of a session it opens the session's tree; in a process that
 * Roost has started for this extension it is a worker; in any other process below a worker it is nothing.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { VERSION } from "@earendil-works/pi-coding-agent";
import { isInsideWorker, workerStart } from "./identity.ts";
import { runRoot } from "./lead.ts";
import { registerLeadTool, registerTools } from "./tools.ts";
import { tooOld } from "./versions.ts";
import { Worker } from "./worker.ts";

export type * from "./contracts.ts";
export type * as protocol from "./protocol.ts";
export {
	SUBAGENT_COMPLETION_TYPE, SUBAGENT_MESSAGE_TYPE, asyncJobId, compactDetails, getNestedSubagentResults, isSubagentDetails, subagentExecutionId, usageTree,
} from "./details.ts";
export { getSubagentsToolDescription } from "./texts.ts";
export { collectCombinedUsageStatusLine } from "./combined.ts";

export default function roost(pi: ExtensionAPI): void {
	const start = workerStart();
	if (start) return runWorker(pi, new Worker(pi, start));
	if (isInsideWorker()) return;
	const old = tooOld(process.versions.node, VERSION);
	if (old) {
		pi.on("session_start", (_event, ctx) => (ctx.hasUI ? ctx.ui.notify(old, "error") : console.error(old)));
		return;
	}
	runRoot(pi);
}

function runWorker(pi: ExtensionAPI, worker: Worker): void {
	registerTools(pi, () => worker);
	registerLeadTool(pi, () => worker);
	pi.on("session_start", (_event, ctx) => worker.begin(ctx));
	pi.on("session_shutdown", () => worker.end());
	worker.listen();
}
