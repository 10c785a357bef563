/** A terminal for one Pi: tmux on a socket of its own. Keys go in, the screen comes out as text. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { PATIENCE_MS } from "./bed.ts";
import type { Bed } from "./bed.ts";

export class Terminal {
	private readonly socket: string;
	private readonly bed: Bed;

	constructor(bed: Bed, command: string[], columns = 100, rows = 40) {
		this.bed = bed;
		this.socket = bed.file("tmux");
		const env = Object.entries(bed.env).filter(([, value]) => value !== undefined).map(([name, value]) => `export ${name}=${quoted(value as string)}`);
		writeFileSync(bed.file("run.sh"), [...env, `cd ${quoted(bed.work)}`, `exec ${command.map(quoted).join(" ")}`].join("\n"));
		// The server of the user's own tmux, with settings of its own, is none of ours.
		this.tmux("-f", "/dev/null", "new-session", "-d", "-x", String(columns), "-y", String(rows), "-s", "pi", `sh ${bed.file("run.sh")}`);
		bed.ends.push(() => {
			try {
				this.tmux("kill-server");
			} catch {
				// Pi has left, and the server with it.
			}
		});
	}

	/** What is on the screen, without the spaces at the ends of lines. */
	screen(): string {
		return this.tmux("capture-pane", "-p", "-t", "pi").split("\n").map((line) => line.trimEnd()).join("\n").trimEnd();
	}

	type(text: string): void {
		this.tmux("send-keys", "-t", "pi", "-l", text);
	}

	key(name: string): void {
		this.tmux("send-keys", "-t", "pi", name);
	}

	/** Types a prompt or command and sends it; a long one goes in as a paste would. */
	enter(text: string): void {
		this.type(text);
		this.key("Enter");
	}

	async until(what: string, holds: (screen: string) => boolean): Promise<string> {
		const end = Date.now() + PATIENCE_MS;
		for (;;) {
			const screen = this.screen();
			if (holds(screen)) return screen;
			assert.ok(Date.now() < end, `no sign of ${what} on the screen:\n${screen}`);
			await new Promise((resolve) => setTimeout(resolve, 100));
		}
	}

	/** Waits until the program has left. */
	async left(): Promise<void> {
		await this.bed.until("the end of Pi", () => {
			try {
				this.tmux("has-session", "-t", "pi");
				return false;
			} catch {
				return true;
			}
		});
	}

	private tmux(...args: string[]): string {
		return execFileSync("tmux", ["-S", this.socket, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], env: { ...this.bed.env, LANG: "C.UTF-8" } });
	}
}

function quoted(text: string): string {
	return `'${text.replaceAll("'", "'\\''")}'`;
}
