/** A daemon whose answers the test makes up. */
import { mkdtempSync, rmSync } from "node:fs";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

export const WELCOME = { id: 0, result: { protocol: 1, daemon: "x", role: "operator" } };

export type Call = { id: number; method: string; params: Record<string, unknown> };

/** A daemon that answers as the test says. */
export async function daemon(t: TestContext, answer: (call: Call, socket: net.Socket, say: (message: unknown) => void, connections: number) => void) {
	const dir = mkdtempSync(join(tmpdir(), "roost-pi-unit-"));
	const path = join(dir, "s");
	const calls: Call[] = [];
	let connections = 0;
	const sockets = new Set<net.Socket>();
	const server = net.createServer((socket) => {
		connections += 1;
		sockets.add(socket);
		let rest = "";
		const say = (message: unknown) => socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...(message as object) })}\n`);
		socket.on("error", () => {});
		socket.setEncoding("utf8").on("data", (text: string) => {
			rest += text;
			for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
				const call = JSON.parse(rest.slice(0, at)) as Call;
				rest = rest.slice(at + 1);
				calls.push(call);
				answer(call, socket, say, connections);
			}
		});
	});
	await new Promise<void>((resolve) => server.listen(path, resolve));
	t.after(() => {
		for (const socket of sockets) socket.destroy();
		server.close();
		rmSync(dir, { recursive: true });
	});
	return { path, calls };
}
