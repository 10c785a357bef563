/** Who this process is in a tree, from what `preflight.mjs` and the environment say. */
import type { Identity } from "./protocol.ts";

/** What `preflight.mjs` has left for the extension of its own process. */
export interface WorkerStart {
	/** The file of the conversation. */
	session: string;
	/** Makes Pi end in an orderly way, as the end of its standard input does; as a failure, with exit code 1. */
	leave(isFailure?: boolean): void;
}

export function workerStart(): WorkerStart | undefined {
	return (globalThis as Record<symbol, unknown>)[Symbol.for("roost-pi.worker")] as WorkerStart | undefined;
}

/** Whether something above this process is a worker: a Pi that one of its commands has started is not that worker. */
export function isInsideWorker(env: NodeJS.ProcessEnv = process.env): boolean {
	return Boolean(env.ROOST_WORKER);
}

export function workerIdentity(env: NodeJS.ProcessEnv = process.env): Identity {
	const { ROOST_TREE, ROOST_WORKER, ROOST_TOKEN, ROOST_EPOCH } = env;
	if (!ROOST_TREE || !ROOST_WORKER || !ROOST_TOKEN || !ROOST_EPOCH) throw new Error("the environment of a worker is not whole: ROOST_TREE, ROOST_WORKER, ROOST_TOKEN, ROOST_EPOCH");
	return { tree: ROOST_TREE, worker: ROOST_WORKER, token: ROOST_TOKEN, epoch: Number(ROOST_EPOCH) };
}
