/** Another extension: writes down what the package exports and what it hears on Pi's bus, and says there what the command `/bus [channel, data]` tells it. */
import { appendFileSync } from "node:fs";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import * as roost from "../../client/pi/index.ts";

const EVENTS = ["ready", "created", "queued", "started", "completed", "failed", "steered"];

export default function client(pi: ExtensionAPI): void {
	const log = process.env.BUS_LOG as string;
	const hear = (channel: string) => pi.events.on(channel, (data) => appendFileSync(log, `${JSON.stringify([channel, data])}\n`));
	appendFileSync(log, `${JSON.stringify(["exports", Object.keys(roost)])}\n`);
	for (const name of EVENTS) hear(`subagents:${name}`);
	pi.registerCommand("bus", {
		description: "Say something on the bus",
		handler: async (args) => {
			const [channel, data] = JSON.parse(args);
			hear(`${channel}:reply:${data.requestId}`);
			pi.events.emit(channel, data);
		},
	});
}
