/**
 * Calls that wait for others to end. Each has a connection of its own, so that giving one up ends the call and not only our interest
 * in it: a result whose wait was given up is still announced. It knows no Pi.
 */
import { Connection } from "./connection.ts";
import type { ConnectionOptions, Patience } from "./connection.ts";
import type { Methods } from "./protocol.ts";
import type { WaitingMethod } from "./role.ts";

export type WaitingCall = { [M in WaitingMethod]: { method: M; params: Methods[M]["params"] } }[WaitingMethod];
export type WaitAnswer = Methods[WaitingMethod]["result"];

/** How long the daemon may be away; its answer takes as long as it takes. */
export type WaitsOptions = Pick<ConnectionOptions, "reach" | "greeting"> & { patience?: Pick<Patience, "backMs"> };

export class Waits {
	private readonly options: WaitsOptions;
	private readonly open = new Set<Connection>();

	constructor(options: WaitsOptions) {
		this.options = options;
	}

	/** Makes the call; the signal gives it up. */
	async make(call: WaitingCall, signal?: AbortSignal): Promise<WaitAnswer> {
		if (signal?.aborted) throw new Error("given up");
		const connection = new Connection(this.options);
		this.open.add(connection);
		const giveUp = () => connection.close(new Error("given up; what was waited for goes on"));
		signal?.addEventListener("abort", giveUp, { once: true });
		try {
			return await connection.call(call.method, call.params);
		} finally {
			signal?.removeEventListener("abort", giveUp);
			this.open.delete(connection);
			connection.close();
		}
	}

	close(): void {
		for (const connection of this.open) connection.close();
	}
}
