/**
 * What a worker saves at each settle: how much of its conversation there was, by length and digest, and the calls it waited in. The
 * conversation itself stays in its file, which only grows; `preflight.mjs` checks it before Pi opens it.
 */
import { createHash } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { SavedContext } from "./protocol.ts";
import type { WaitingCall } from "./waits.ts";

export interface PiContext {
	/** `preflight.mjs` takes no other one. */
	schema: 1;
	bytes: number;
	sha256: string;
	calls: WaitingCall[];
}

/** Undefined while Pi has written nothing: there is nothing to go on from. */
export function saveContext(session: string, calls: WaitingCall[]): SavedContext | undefined {
	if (!existsSync(session)) return undefined;
	// Pi does not sync what it writes, and what is said to be saved must outlive the machine.
	const text = readFileSync(session);
	for (const path of [session, dirname(session)]) {
		const file = openSync(path, "r");
		fsyncSync(file);
		closeSync(file);
	}
	const context: PiContext = { schema: 1, bytes: text.length, sha256: createHash("sha256").update(text).digest("hex"), calls };
	return { bytes: JSON.stringify(context) };
}

/** The calls that the process before this one waited in. */
export function savedCalls(path: string | undefined): WaitingCall[] {
	return path ? (JSON.parse(readFileSync(path, "utf8")) as PiContext).calls : [];
}
