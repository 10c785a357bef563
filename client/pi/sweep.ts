/** Conversations of trees that the daemon has forgotten (their retention is over) go as well. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { StatusReply } from "./protocol.ts";

/** `look` lists all trees that the daemon knows, open and closed: asked as an operator, for to a root only its own is shown. */
export async function sweepConversations(stateDir: () => string | undefined, look: () => Promise<StatusReply>): Promise<void> {
	// The first answer says where the daemon is.
	await look();
	const folder = join(stateDir() ?? "", "pi");
	if (!isAbsolute(folder) || !existsSync(folder)) return;
	// Before the second look: a tree that is made in between has no folder in this list.
	const found = readdirSync(folder);
	const known = new Set((await look()).trees.map((tree) => tree.tree));
	for (const tree of found) if (/^t[0-9a-f]+$/.test(tree) && !known.has(tree)) rmSync(join(folder, tree), { recursive: true, force: true });
}
