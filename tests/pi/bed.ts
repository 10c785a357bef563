/**
 * What each test has: a directory of its own with a daemon and a Pi configuration of its own, and Pis in it that are spoken to by RPC.
 * All that was started ends with the test.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestContext } from "node:test";

export const HERE = dirname(fileURLToPath(import.meta.url));
export const EXTENSION = join(HERE, "../../client/pi/index.ts");
/** How long anything may take on a busy machine before a test fails. */
export const PATIENCE_MS = 120_000;

/** The version under test. */
export const PI_VERSION = process.env.PI_UNDER_TEST ?? "1.6.0";
export const PI_PACKAGE = join(HERE, "hosts", PI_VERSION, "node_modules/@earendil-works/pi-coding-agent");
export const PI_ENTRY = join(PI_PACKAGE, JSON.parse(fs.readFileSync(join(PI_PACKAGE, "package.json"), "utf8")).bin.pi);

type Json = any;

export function roostBin(): string {
	const bin = process.env.ROOST_BIN;
	assert.ok(bin, "ROOST_BIN names the command roost");
	return bin;
}

export class Bed {
	readonly dir = fs.mkdtempSync(join(tmpdir(), "roost-pi-"));
	readonly state = join(this.dir, "state");
	readonly agentDir = join(this.dir, "agent");
	readonly work = join(this.dir, "work");
	readonly log = join(this.dir, "model.log");
	readonly env: NodeJS.ProcessEnv;
	/** What is ended before the daemon, which some of it would start again. */
	readonly ends: (() => void)[] = [];
	private readonly pis: Pi[] = [];

	constructor(t: TestContext, env: NodeJS.ProcessEnv = {}) {
		for (const dir of [this.agentDir, this.work]) fs.mkdirSync(dir);
		this.setting({ enableInstallTelemetry: false, quietStartup: true });
		const faux = join(HERE, "faux.ts");
		this.env = {
			PATH: process.env.PATH, HOME: this.dir, LANG: "C.UTF-8", TERM: "xterm-256color", ROOST_BIN: roostBin(), ROOST_STATE_DIR: this.state,
			PI_CODING_AGENT_DIR: this.agentDir, PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1",
			PI_SUBAGENTS_EXTENSIONS: faux, FAUX_LOG: this.log, ...env,
		};
		t.after(() => this.end());
	}

	setting(settings: Json): void {
		fs.writeFileSync(join(this.agentDir, "settings.json"), JSON.stringify(settings));
	}

	file(name: string): string {
		return join(this.dir, name);
	}

	/** The command `roost` with `--json`. It starts no daemon: looking must not bring one back that a test has ended. */
	roost(...args: string[]): Json {
		return JSON.parse(execFileSync(roostBin(), [...args, "--json"], { env: { ...this.env, ROOST_NO_START: "1" }, encoding: "utf8", timeout: PATIENCE_MS }));
	}

	/** The one open tree. */
	tree(): string {
		return this.roost("status").trees[0].tree;
	}

	workers(tree = this.tree()): Json[] {
		return this.roost("status", "--tree", tree).workers;
	}

	/** Waits until this holds; what is looked at tells nobody that it changes. */
	async until(what: string, holds: () => boolean): Promise<void> {
		const end = Date.now() + PATIENCE_MS;
		while (!holds()) {
			assert.ok(Date.now() < end, `no sign of ${what}`);
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	}

	worker(name: string): Json {
		const found = this.workers().find((worker) => worker.name === name);
		assert.ok(found, `there is a worker ${name}`);
		return found;
	}

	/** The events of the one open tree. */
	events(): Json[] {
		const said = execFileSync(roostBin(), ["events", "--tree", this.tree(), "--json"], { env: this.env, encoding: "utf8", timeout: PATIENCE_MS });
		return said.trimEnd().split("\n").map((line) => JSON.parse(line));
	}

	/** What the model of this worker was shown at each of its turns. */
	turns(worker: string | undefined): { pid: number; thinking?: string; messages: [string, string][] }[] {
		if (!fs.existsSync(this.log)) return [];
		const lines = fs.readFileSync(this.log, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
		return lines.filter((line) => line.worker === worker);
	}

	/** A Pi that is spoken to by RPC. */
	pi(args: string[] = [], env: NodeJS.ProcessEnv = {}): Pi {
		const session = this.file(`root-${this.pis.length}.jsonl`);
		const pi = new Pi(this, ["--mode", "rpc", "-ne", "-e", join(HERE, "faux.ts"), "-e", EXTENSION, ...(args.includes("--model") ? [] : ["--model", "faux/faux-1"]),
			...(args.includes("--session") || args.includes("--no-session") ? [] : ["--session", session]), ...args], { ...this.env, ...env });
		this.pis.push(pi);
		return pi;
	}

	/** A Pi that runs once: `-p`, or `--mode json`. */
	once(args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; stdout: string; stderr: string }> {
		const all = [PI_ENTRY, "-ne", "-e", join(HERE, "faux.ts"), "-e", EXTENSION, "--model", "faux/faux-1", ...args];
		return new Promise((resolve) => {
			const child = execFile(process.execPath, all, { cwd: this.work, env: { ...this.env, ...env }, encoding: "utf8", timeout: PATIENCE_MS }, (error, stdout, stderr) =>
				resolve({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, stdout, stderr }));
			child.stdin?.end();
		});
	}

	stopDaemon(): void {
		execFileSync(roostBin(), ["daemon", "stop", "--now"], { env: this.env, stdio: "ignore", timeout: PATIENCE_MS });
	}

	private async end(): Promise<void> {
		for (const end of this.ends) end();
		for (const pi of this.pis) await pi.kill();
		try {
			this.stopDaemon();
		} catch {
			// A test may have ended it.
		}
		if (!process.env.KEEP_BED) fs.rmSync(this.dir, { recursive: true, force: true });
		else console.error(this.dir);
	}
}

export class Pi {
	readonly events: Json[] = [];
	readonly process: ChildProcess;
	private readonly exited: Promise<number | string>;
	readonly session: string;
	stderr = "";
	private readonly watchers = new Set<() => void>();
	private lastId = 0;
	private gone = false;

	constructor(bed: Bed, args: string[], env: NodeJS.ProcessEnv) {
		this.session = args[args.indexOf("--session") + 1] ?? "";
		this.process = spawn(process.execPath, [PI_ENTRY, ...args], { cwd: bed.work, env, stdio: ["pipe", "pipe", "pipe"] });
		let rest = "";
		this.process.stdout?.setEncoding("utf8").on("data", (text: string) => {
			rest += text;
			for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
				this.events.push(JSON.parse(rest.slice(0, at)));
				rest = rest.slice(at + 1);
			}
			this.tell();
		});
		this.process.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
		this.process.stdin?.on("error", () => {});
		this.exited = new Promise((resolve) => this.process.on("close", (code, signal) => {
			this.gone = true;
			this.tell();
			resolve(code ?? signal ?? "?");
		}));
	}

	/** A command, and its answer. */
	async ask(command: Json): Promise<Json> {
		const id = `t${++this.lastId}`;
		this.process.stdin?.write(`${JSON.stringify({ id, ...command })}\n`);
		return await this.event(`the answer to ${command.type}`, (event) => event.type === "response" && event.id === id);
	}

	async prompt(message: string): Promise<void> {
		const answer = await this.ask({ type: "prompt", message, streamingBehavior: "steer" });
		assert.equal(answer.success, true, JSON.stringify(answer));
	}

	/** Lets the model make these steps, and waits until it has made them and is idle. */
	async does(...steps: Json[]): Promise<void> {
		const end = `done ${++this.lastId}`;
		await this.prompt(script([...steps, { say: end }]));
		const isEnd = (event: Json) => event.type === "message_end" && event.message.role === "assistant" && event.message.content[0]?.text === end;
		await this.until("the end of the run", () => this.events.slice(this.events.findIndex(isEnd)).some((event) => event.type === "agent_settled") && this.events.some(isEnd));
	}

	/** The first event since `from` that fits; waits for it. */
	async event(what: string, fits: (event: Json) => boolean, from = 0): Promise<Json> {
		let found: Json;
		await this.until(what, () => (found = this.events.slice(from).find(fits)) !== undefined);
		return found;
	}

	/** Waits until this holds; looked at after each event. */
	until(what: string, holds: () => boolean): Promise<void> {
		return new Promise((resolve, reject) => {
			const end = (error?: Error) => {
				clearTimeout(timer);
				this.watchers.delete(look);
				error ? reject(error) : resolve();
			};
			const look = () => {
				if (holds()) end();
				else if (this.gone) end(new Error(`Pi has ended without ${what}; ${this.said()}`));
			};
			const timer = setTimeout(() => end(new Error(`no sign of ${what}; ${this.said()}`)), PATIENCE_MS);
			this.watchers.add(look);
			look();
		});
	}

	/** Messages of this kind that entered the conversation. */
	messages(customType: string): Json[] {
		return this.events.filter((event) => event.type === "message_end" && event.message.role === "custom" && event.message.customType === customType).map((event) => event.message);
	}

	/** Each result that arrived as a message: name and answer. */
	arrived(): [string, string][] {
		return this.messages("subagent_completion").flatMap((message) => message.details.results.map((result: Json) => [result.name, result.finalOutput]));
	}

	/** What the tools answered with. */
	toolResults(name: string): Json[] {
		return this.events.filter((event) => event.type === "tool_execution_end" && event.toolName === name);
	}

	/** The lines of its session file. */
	entries(): Json[] {
		return fs.readFileSync(this.session, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
	}

	settled(): number {
		return this.events.filter((event) => event.type === "agent_settled").length;
	}

	/** Ends it as a user does. */
	async quit(): Promise<number | string> {
		this.process.stdin?.end();
		return await this.left();
	}

	async kill(): Promise<void> {
		if (!this.gone) this.process.kill("SIGKILL");
		await this.left();
	}

	/** Waits for its end; its exit code, or the signal. */
	async left(): Promise<number | string> {
		let timer: NodeJS.Timeout | undefined;
		const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(`Pi does not leave; ${this.said()}`)), PATIENCE_MS)));
		return await Promise.race([this.exited, late]).finally(() => clearTimeout(timer));
	}

	private said(): string {
		return `${this.stderr}\n${this.events.filter((event) => event.type !== "message_update").slice(-12).map((event) => JSON.stringify(event).slice(0, 400)).join("\n")}`;
	}

	private tell(): void {
		for (const watcher of [...this.watchers]) watcher();
	}
}

/** What a tool answered with. */
export const answerOf = (result: Json): string => result?.result.content[0]?.text ?? "";

/** A script for the model: see `script.ts`. */
export function script(steps: Json[], later: Json[] = []): string {
	return `DO ${JSON.stringify(steps)}${later.length > 0 ? `\nLATER ${JSON.stringify(later)}` : ""}`;
}

export const launch = (...tasks: Json[]): Json => ({ call: [["subagents", { tasks }]] });
