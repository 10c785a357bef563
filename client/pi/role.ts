/** What the tools need of a root or a worker. */
import type { ExecutionId, Methods, WorkerResult } from "./protocol.ts";

/** A call that waits for others to end. */
export type WaitingMethod = "launch" | "result";

/** What came of it: its answer, or the caller is put away and the answer comes as a message. */
export type Waited<M extends WaitingMethod> = { answer: Methods[M]["result"] } | { parked: true };

export interface Role {
	/** The signal gives it up. */
	call<M extends keyof Methods>(method: M, params: Methods[M]["params"], signal?: AbortSignal): Promise<Methods[M]["result"]>;
	/** A call that waits; aborting it aborts the wait and nothing else. */
	wait<M extends WaitingMethod>(method: M, params: Methods[M]["params"], signal: AbortSignal | undefined): Promise<Waited<M>>;
	/** The interrupt generation that this side knows. */
	generation(): number | undefined;
	/** These results were read by a call of ours and are not to be announced. */
	consumed(executions: readonly ExecutionId[]): void;
	/** Something was launched. */
	launched(): void;
	/** Results that were read. */
	ended(results: readonly WorkerResult[]): void;
}
