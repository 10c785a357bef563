/** The interactive TUI under tmux: the two lines, the usage line, Escape, the commands; screens are compared with golden files. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Bed, EXTENSION, HERE, PI_ENTRY, PI_VERSION, launch, script } from "./bed.ts";
import { Terminal } from "./terminal.ts";

const WAITING = "Waiting for subagents - don't close the session";

const gated = (bed: Bed, name: string) => ({ name, task: script([{ until: bed.file(`gate-${name}`), say: `${name} says\nin $TURNS turns` }]) });
const open = (bed: Bed, name: string) => writeFileSync(bed.file(`gate-${name}`), "");
const command = (session: string, ...args: string[]) =>
	[process.execPath, PI_ENTRY, "-ne", "-e", join(HERE, "faux.ts"), "-e", EXTENSION, "--model", "faux/faux-1", "--session", session, ...args];

/** The part of a screen that is ours, with what a clock and an animation change made the same. */
function ours(bed: Bed, screen: string, from: RegExp): string {
	const lines = screen.split("\n");
	const start = lines.findLastIndex((line) => from.test(line));
	assert.ok(start >= 0, `${from} is on the screen:\n${screen}`);
	const end = lines.findLastIndex((line) => line.startsWith("WITH SUBS"));
	return lines.slice(start, end + 1).join("\n").replaceAll(bed.dir, "DIR").replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, "⠋").replace(/\b\d+s\b/g, "Ns").replace(/[↑↓RW][\d.]+k?/g, (word) => `${word[0]}N`).replace(/─{20,}/g, "────").replace(/ +$/gm, "");
}

/** Compares with a golden file; `GOLDEN=write` writes it. */
function golden(name: string, text: string): void {
	const file = join(HERE, "golden", PI_VERSION, `${name}.txt`);
	if (process.env.GOLDEN === "write" || !existsSync(file)) {
		assert.equal(process.env.GOLDEN, "write", `there is no ${file}; GOLDEN=write makes it`);
		mkdirSync(dirname(file), { recursive: true });
		writeFileSync(file, `${text}\n`);
	}
	assert.equal(`${text}\n`, readFileSync(file, "utf8"), name);
}

let prompts = 0;

/** The model reads its script from a file: what is typed is short. One version of Pi shows its editor before it takes anything from it. */
async function prompt(bed: Bed, terminal: Terminal, text: string): Promise<void> {
	const file = bed.file(`prompt-${++prompts}`);
	writeFileSync(file, text);
	terminal.type(`SCRIPT ${file}`);
	await terminal.until("what was typed", (screen) => screen.includes(file));
	const isTaken = () => bed.turns(undefined).some((turn) => turn.messages.some(([, said]) => said.includes(file)));
	for (const end = Date.now() + 60_000; !isTaken() && Date.now() < end; ) {
		terminal.key("Enter");
		await new Promise((resolve) => setTimeout(resolve, 1_000));
	}
}

test("the line of who runs, the line that somebody waits, the usage line, and their ends", async (t) => {
	const bed = new Bed(t);
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl"), "--subagent-cap", "2"));
	const start = await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	assert.ok(!start.includes("WITH SUBS") && !start.includes("Running"), "nothing is shown before the first subagent");
	await prompt(bed, terminal, script([launch(gated(bed, "alpha"), gated(bed, "beta"), gated(bed, "gamma")), { until: bed.file("gate-lead"), say: "launched" }], [{ say: "I see" }]));
	const busy = await terminal.until("who runs", (screen) => /Running 2: alpha \d+s, beta \d+s · 1 queued/.test(screen));
	assert.ok(!busy.includes(WAITING), "the lead is busy");
	open(bed, "lead");
	const idle = await terminal.until("that somebody waits", (screen) => screen.includes(WAITING) && screen.includes("WITH SUBS"));
	assert.ok(idle.indexOf(WAITING) < idle.indexOf("Running 2:"));
	golden("waiting", ours(bed, idle, /Waiting for subagents/));
	for (const name of ["alpha", "beta", "gamma"]) open(bed, name);
	const done = await terminal.until("the end of it", (screen) => !screen.includes(WAITING) && !/Running \d/.test(screen) && /✓ gamma/.test(screen));
	assert.match(done, /WITH SUBS .*\(3 subagents\)/);
	assert.ok(!done.includes("in 1 turns"), "collapsed");
	terminal.key("C-o");
	await terminal.until("the whole text", (screen) => screen.includes("in 1 turns"));
	terminal.enter("/quit");
	await terminal.left();
	// A session that is opened again knows what it has cost.
	const again = new Terminal(bed, command(bed.file("tui.jsonl")));
	await again.until("the usage line", (screen) => /WITH SUBS .*\(3 subagents\)/.test(screen));
});

test("Escape stops everything while the lead is idle, and keeps its meaning when there is nothing to stop", async (t) => {
	const bed = new Bed(t);
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl"), "--subagent-cap", "1"));
	await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	await prompt(bed, terminal, script([launch(gated(bed, "alpha"), gated(bed, "beta")), { say: "launched" }]));
	await terminal.until("that somebody waits", (screen) => screen.includes(WAITING) && /Running 1: alpha/.test(screen));
	terminal.key("Escape");
	await terminal.until("that they are stopped", (screen) => screen.includes("Stopped 2 subagents") && !screen.includes(WAITING));
	assert.ok(bed.workers().every((worker) => worker.outcome.status === "stopped"));
	// With nothing to stop Pi has its Escape: it interrupts the run.
	await prompt(bed, terminal, script([{ call: [["bash", { command: `touch ${bed.file("busy")}; sleep 1000` }]] }, { say: "not reached" }]));
	await bed.until("a tool that runs", () => existsSync(bed.file("busy")));
	terminal.key("Escape");
	await terminal.until("that the run is aborted", (screen) => /aborted/i.test(screen));
	assert.equal(bed.workers().length, 2);
});

test("Escape while the lead is busy interrupts it and all of its subagents", async (t) => {
	const bed = new Bed(t);
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl")));
	await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	await prompt(bed, terminal, script([launch(gated(bed, "alpha")), { call: [["bash", { command: `touch ${bed.file("busy")}; sleep 1000` }]] }, { say: "not reached" }]));
	await bed.until("a tool that runs", () => existsSync(bed.file("busy")));
	await bed.until("its subagent's turn", () => bed.turns(bed.worker("alpha").worker).length > 0);
	terminal.key("Escape");
	await terminal.until("both ends", (screen) => screen.includes("Stopped 1 subagent") && /aborted/i.test(screen));
	assert.equal(bed.worker("alpha").outcome.status, "stopped");
});

test("/subagents lists them, and shows the conversation of one", async (t) => {
	const bed = new Bed(t);
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl")));
	await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	await prompt(bed, terminal, script([launch({ name: "alpha", task: script([{ say: "alpha has said this" }]) }, gated(bed, "beta")), { say: "launched" }]));
	await terminal.until("a result", (screen) => /✓ alpha/.test(screen) && /Running 1: beta/.test(screen));
	terminal.enter("/subagents");
	const list = await terminal.until("the list", (screen) => /alpha {2}completed/.test(screen) && /beta {2}running/.test(screen));
	golden("list", ours(bed, list, /^ *Subagents$/).split("\n").filter((line) => /Subagents|alpha|beta/.test(line) && !/Running/.test(line)).join("\n"));
	terminal.key("Enter");
	await terminal.until("what can be done", (screen) => screen.includes("View its conversation"));
	terminal.key("Enter");
	await terminal.until("its conversation", (screen) => screen.includes("alpha has said this") && /alpha \(a copy/.test(screen));
	terminal.key("Escape");
	const closed = await terminal.until("the editor", (screen) => !screen.includes("a copy"));
	assert.ok(!closed.includes("Stopped"), "Escape closes what is open, and stops nobody");
	terminal.enter("/subagent:max-concurency 3");
	await terminal.until("the cap", (screen) => screen.includes("At most 3 subagents run at a time"));
	assert.equal(bed.worker("beta").state, "running", "looking stops nobody");
});
