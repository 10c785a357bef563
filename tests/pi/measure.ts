/**
 * What parking buys: resident memory and the latency of a wake, of a parked parent against one that stays. Not a test; `docs/pi.md` has
 * the figures. `ROOST_BIN=... PI_UNDER_TEST=1.6.0 NODE tests/pi/measure.ts`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { Bed, PI_VERSION, launch, script } from "./bed.ts";

const RUNS = 5;

async function main(): Promise<void> {
	const ends: (() => unknown)[] = [];
	const bed = new Bed({ after: (end: () => unknown) => ends.push(end) } as unknown as TestContext);
	for (const cap of ["2", "1"]) {
		const pi = bed.pi(["--subagent-cap", cap, "--session", bed.file(`cap-${cap}.jsonl`)]);
		const latencies: number[] = [];
		let memory = "";
		for (let run = 0; run < RUNS; run++) {
			const gate = bed.file(`gate-${cap}-${run}`);
			const [parent, child] = [`parent${run}`, `child${run}`];
			await pi.does(launch({ name: parent, max_subagents_allowed: 1, task: script([launch({ name: child, task: script([{ until: gate, say: "C" }]) }), { say: "waits" }], [{ say: "P($ANSWERS)" }]) }));
			const tree = async () => {
				const { sessionId } = (await pi.ask({ type: "get_state" })).data;
				return bed.roost("status").trees.find((one: { key: string }) => one.key === `pi:${sessionId}`).tree as string;
			};
			const id = await tree();
			const find = (name: string) => bed.workers(id).find((worker) => worker.name === name);
			await bed.until("both", () => find(child) && bed.turns(find(child).worker).length > 0 && ["waiting", "parked"].includes(find(parent).state));
			const worker = find(parent);
			memory = worker.state === "parked" ? "0 (no process)" : `${resident(worker.pid)} MB`;
			const before = bed.turns(worker.worker).length;
			const since = Date.now();
			writeFileSync(gate, "");
			await new Promise<void>((resolve) => {
				const look = () => (bed.turns(worker.worker).length > before ? resolve() : setTimeout(look, 5));
				look();
			});
			latencies.push(Date.now() - since);
			await pi.until("the result", () => pi.arrived().length === run + 1);
		}
		latencies.sort((a, b) => a - b);
		console.log(`Pi ${PI_VERSION}, ${cap === "1" ? "parked" : "living"} parent: resident ${memory}; child's last turn to parent's next, ms: ${latencies.join(" ")}`);
		await pi.quit();
	}
	for (const end of ends) await end();
}

/** Resident and proportional set size. */
function resident(pid: number): string {
	const kib = (file: string, field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "utf8"))?.[1]);
	return `${Math.round(kib("status", "VmRSS") / 1024)} (PSS ${Math.round(kib("smaps_rollup", "Pss") / 1024)})`;
}

await main();
