/**
 * Where the daemon is: found, and started on demand, through the command `roost`. What goes wrong is one line that says what to do.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import type { DaemonStatusReply } from "./protocol.ts";

export interface Places {
	socket: string;
	stateDir: string;
}

const HOW_TO_INSTALL = "install Roost and put `roost` and `roostd` on PATH, or set ROOST_BIN to the command `roost`";
/** Who we are is none of the daemon's business: it outlives us. */
const NOT_PASSED = ["ROOST_TREE", "ROOST_WORKER", "ROOST_TOKEN", "ROOST_EPOCH", "ROOST_EXECUTION", "ROOST_CONTEXT", "ROOST_WAKE", "ROOST_PI_STARTED"];

/** Starts the daemon unless it is running. */
export async function startDaemon(env: NodeJS.ProcessEnv = process.env): Promise<Places> {
	const program = findRoost(env);
	const passed = Object.fromEntries(Object.entries(env).filter(([name]) => !NOT_PASSED.includes(name)));
	const said = await run(program, ["daemon", "start", "--json"], passed);
	const status = JSON.parse(said) as DaemonStatusReply;
	return { socket: status.socket, stateDir: status.state_dir };
}

function findRoost(env: NodeJS.ProcessEnv): string {
	if (env.ROOST_BIN) {
		if (!isExecutable(env.ROOST_BIN)) throw new Error(`ROOST_BIN is ${env.ROOST_BIN}, which is no program; ${HOW_TO_INSTALL}`);
		return env.ROOST_BIN;
	}
	const folders = (env.PATH ?? "").split(delimiter).filter(isAbsolute);
	const found = folders.map((folder) => join(folder, "roost")).find(isExecutable);
	if (!found) throw new Error(`the command \`roost\` is not on PATH; ${HOW_TO_INSTALL}`);
	return found;
}

function isExecutable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

function run(program: string, args: string[], env: NodeJS.ProcessEnv): Promise<string> {
	return new Promise((resolve, reject) => {
		execFile(program, args, { env, encoding: "utf8", timeout: 150_000 }, (error, stdout, stderr) => {
			if (!error) return resolve(stdout);
			const said = stderr.trim().split("\n")[0] || error.message;
			reject(new Error(`\`${program} ${args.join(" ")}\` failed: ${said}`));
		});
	});
}
