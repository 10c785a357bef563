/**
 * Runs in a worker's process before Pi does (`node --import`). It says where the conversation is, mends what a crash has left of it,
 * and stands between the supervisor's pipe and Pi: the line `exit` there is the order to leave, a bare end is the supervisor's death,
 * which a worker outlives. It knows neither the socket nor Pi's own protocol.
 */
import { createHash } from "node:crypto";
import { closeSync, existsSync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync, readSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { isMainThread } from "node:worker_threads";

const { ROOST_CONTEXT, ROOST_EPOCH, ROOST_PI_STARTED, ROOST_STATE_DIR, ROOST_TREE, ROOST_WORKER } = process.env;
const LF = 0x0a;
/** Which incarnation of which worker this is. */
const SELF = `${ROOST_TREE}/${ROOST_WORKER}/${ROOST_EPOCH}`;

// A fork of the worker's process has all of its arguments and its environment: to it this is said to have happened.
if (isMainThread && ROOST_STATE_DIR && ROOST_TREE && ROOST_WORKER && ROOST_PI_STARTED !== SELF) prepare();

function prepare() {
	const session = join(ROOST_STATE_DIR, "pi", ROOST_TREE, `${ROOST_WORKER}.jsonl`);
	process.env.ROOST_PI_STARTED = SELF;
	mkdirSync(dirname(session), { recursive: true, mode: 0o700 });
	checkContext(session);
	cutTornTail(session);
	process.argv.push("--session", session);
	const input = new PassThrough();
	Object.defineProperty(process, "stdin", { value: input, configurable: true, enumerable: true });
	syncBuiltinESMExports();
	const leave = (isFailure = false) => {
		// Pi sets its own when it leaves.
		if (isFailure) process.once("exit", () => (process.exitCode = 1));
		input.end();
	};
	// Only this process is the worker: the environment that says so is seen by all that it starts.
	globalThis[Symbol.for("roost-pi.worker")] = { session, leave };
	awaitOrder(leave);
}

/** What was saved at the last settle must still be there; what came after it may be. A conversation never begins anew by accident. */
function checkContext(session) {
	if (!ROOST_CONTEXT) return;
	const { schema, bytes, sha256 } = JSON.parse(readFileSync(ROOST_CONTEXT, "utf8"));
	if (schema !== 1) refuse(`${ROOST_CONTEXT} is of another version of this extension (${schema})`);
	const text = existsSync(session) ? readFileSync(session) : Buffer.alloc(0);
	if (createHash("sha256").update(text.subarray(0, bytes)).digest("hex") === sha256) return;
	refuse(`${session} is not the conversation that was saved: its first ${bytes} bytes have changed or are gone`);
}

function refuse(why) {
	console.error(why);
	process.exit(1);
}

/** An entry is a line: what a killed process wrote of its last one goes, else the next entry would be glued to it. */
function cutTornTail(path) {
	let file;
	try {
		file = openSync(path, "r+");
	} catch (error) {
		if (error.code === "ENOENT") return;
		throw error;
	}
	const size = fstatSync(file).size;
	const piece = Buffer.alloc(64 * 1024);
	let end = size;
	while (end > 0) {
		const from = Math.max(0, end - piece.length);
		const read = readSync(file, piece, 0, end - from, from);
		const at = piece.subarray(0, read).lastIndexOf(LF);
		end = at >= 0 ? from + at + 1 : from;
		if (at >= 0) break;
	}
	if (end < size) ftruncateSync(file, end);
	closeSync(file);
}

function awaitOrder(leave) {
	const orders = new Socket({ fd: 0, readable: true, writable: false });
	let said = "";
	orders.setEncoding("latin1");
	orders.on("data", (text) => {
		said = (said + text).slice(-4096);
		if (said.split("\n").includes("exit")) leave();
	});
	orders.on("error", () => {});
}
