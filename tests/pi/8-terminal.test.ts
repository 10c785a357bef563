/** The interactive TUI under tmux: the two lines, the usage line, Escape, the commands; screens are compared with golden files. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Bed, EXTENSION, HERE, PI_ENTRY, PI_VERSION, launch, script } from "./bed.ts";
import { Terminal } from "./terminal.ts";

const WAITING = "Waiting for subagents - don't close the session";

const gated = (bed: Bed, name: string) => ({ name, task: `The task of ${name}\n${script([{ until: bed.file(`gate-${name}`), say: `${name} says\nin $TURNS turns` }])}` });
const open = (bed: Bed, name: string) => writeFileSync(bed.file(`gate-${name}`), "");
const command = (session: string, ...args: string[]) =>
	[process.execPath, PI_ENTRY, "-ne", "-e", join(HERE, "faux.ts"), "-e", EXTENSION, "--model", "faux/faux-1", "--session", session, ...args];

/** A part of a screen, with what a clock, an animation and the screen's height change made the same. Undefined while it is not there. */
function part(bed: Bed, screen: string, from: RegExp, to: RegExp): string | undefined {
	const lines = screen.split("\n");
	const end = lines.findLastIndex((line) => to.test(line));
	const start = lines.slice(0, end + 1).findLastIndex((line) => from.test(line));
	if (start < 0) return undefined;
	const text = lines.slice(start, end + 1).join("\n").replaceAll(bed.dir, "DIR").replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, "⠋").replace(/\b\d+s\b/g, "Ns");
	return text.replace(/[↑↓RW][\d.]+k?/g, (word) => `${word[0]}N`).replace(/─{20,}/g, "────").replace(/ +$/gm, "").replace(/\n{3,}/g, "\n\n");
}

/** Waits until this part of the screen is what the golden file says; `GOLDEN=write` writes it once it stands still. */
async function golden(bed: Bed, terminal: Terminal, name: string, from: RegExp, to: RegExp): Promise<void> {
	const file = join(HERE, "golden", PI_VERSION, `${name}.txt`);
	if (process.env.GOLDEN === "write") {
		mkdirSync(dirname(file), { recursive: true });
		for (let before = ""; ; await new Promise((resolve) => setTimeout(resolve, 1_000))) {
			const shown = part(bed, terminal.screen(), from, to);
			if (shown && shown === before) return writeFileSync(file, `${shown}\n`);
			before = shown ?? "";
		}
	}
	assert.ok(existsSync(file), `there is no ${file}; GOLDEN=write makes it`);
	const expected = readFileSync(file, "utf8");
	await terminal.until(`the screen ${name}:\n${expected}`, (screen) => `${part(bed, screen, from, to)}\n` === expected);
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
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl"), "--subagent-cap", "2"), 100, 80);
	const start = await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	assert.ok(!start.includes("WITH SUBS") && !start.includes("Running"), "nothing is shown before the first subagent");
	await prompt(bed, terminal, script([launch(gated(bed, "alpha"), gated(bed, "beta"), gated(bed, "gamma")), { until: bed.file("gate-lead"), say: "launched" }], [{ say: "I see" }]));
	const busy = await terminal.until("who runs", (screen) => /Running 2: alpha \d+s, beta \d+s · 1 queued/.test(screen));
	assert.ok(!busy.includes(WAITING), "the lead is busy");
	open(bed, "lead");
	const idle = await terminal.until("that somebody waits", (screen) => screen.includes(WAITING) && screen.includes("WITH SUBS"));
	assert.ok(idle.indexOf(WAITING) < idle.indexOf("Running 2:"));
	await golden(bed, terminal, "waiting", /Waiting for subagents/, /^WITH SUBS/);
	await golden(bed, terminal, "receipt", /○ alpha/, /○ gamma/);
	// One after the other, each taken in: how many come at once is not of this test.
	for (const [at, name] of ["alpha", "beta", "gamma"].entries()) {
		open(bed, name);
		await terminal.until("its result", (screen) => screen.includes(`✓ ${name}`) && screen.split("I see").length === at + 2);
	}
	const done = await terminal.until("the end of it", (screen) => !screen.includes(WAITING) && !/Running \d/.test(screen));
	assert.match(done, /WITH SUBS .*\(3 subagents\)/);
	await golden(bed, terminal, "completions", /✓ alpha/, /✓ gamma/);
	terminal.key("C-o");
	await golden(bed, terminal, "receipt-expanded", /Job j\d+\. This is a receipt/, /again and again\.$/);
	await golden(bed, terminal, "completions-expanded", /\[subagent alpha completed\]/, /in 1 turns/);
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
	await golden(bed, terminal, "escape", /Stopped 2 subagents/, /^WITH SUBS/);
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
	await golden(bed, terminal, "list", /^ *Subagents$/, /beta {2}running/);
	terminal.key("Enter");
	await golden(bed, terminal, "verbs", /^ *alpha$/, /Message it/);
	terminal.key("Enter");
	await terminal.until("its conversation", (screen) => screen.includes("alpha has said this") && /alpha \(a copy/.test(screen));
	terminal.key("Escape");
	const closed = await terminal.until("the editor", (screen) => !screen.includes("a copy"));
	assert.ok(!closed.includes("Stopped"), "Escape closes what is open, and stops nobody");
	terminal.enter("/subagent:max-concurency 3");
	await golden(bed, terminal, "cap", /At most 3 subagents/, /^WITH SUBS/);
	assert.equal(bed.worker("beta").state, "running", "looking stops nobody");
});

test("what /subagents offers is done: one that has ended is messaged, one that runs is stopped", async (t) => {
	const bed = new Bed(t);
	const terminal = new Terminal(bed, command(bed.file("tui.jsonl")));
	await terminal.until("an editor", (screen) => screen.includes("faux-1"));
	await prompt(bed, terminal, script([launch({ name: "alpha", task: script([{ say: "one" }], [{ say: "after $TURNS turns" }]) }, gated(bed, "beta")), { say: "launched" }]));
	await terminal.until("a result", (screen) => /✓ alpha/.test(screen) && /Running 1: beta/.test(screen));
	const choose = async (name: string, verb: string) => {
		terminal.enter("/subagents");
		await terminal.until("the list", (screen) => /→ alpha {2}/.test(screen));
		if (name === "beta") terminal.key("Down");
		await terminal.until(name, (screen) => screen.includes(`→ ${name}  `));
		terminal.key("Enter");
		const verbs = await terminal.until("what can be done", (screen) => screen.includes("→ View its conversation"));
		assert.equal(verbs.includes("Stop it"), name === "beta", "what has ended cannot be stopped");
		terminal.key("Down");
		if (verb === "Stop it") terminal.key("Down");
		await terminal.until(verb, (screen) => screen.includes(`→ ${verb}`));
		terminal.key("Enter");
	};
	await choose("alpha", "Message it");
	await terminal.until("a line to type in", (screen) => screen.includes("Message to alpha"));
	terminal.enter("and sparrows");
	await terminal.until("its second result", (screen) => screen.includes("alpha goes on with it") && screen.includes("after 2 turns"));
	assert.equal(bed.turns(bed.worker("alpha").worker).at(-1)?.messages.at(-1)?.[1], "[message from your lead]\nand sparrows");
	await choose("beta", "Stop it");
	await terminal.until("that it is stopped", (screen) => screen.includes("beta: stopped") && !/Running \d/.test(screen));
	assert.equal(bed.worker("beta").outcome.status, "stopped");
});
