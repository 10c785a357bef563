/**
 * Calls of a worker that wait for its subagents, and in which it may be put away: their tools end without the answer, which comes as a
 * message of its own, in this process or, made again under the same request id, in the next one.
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { SUBAGENT_COMPLETION_TYPE, detailsFrom, singleResult } from "./details.ts";
import type { ExecutionId, TreeId, WorkerResult } from "./protocol.ts";
import { foregroundText, readText } from "./texts.ts";
import type { WaitAnswer, WaitingCall, Waits } from "./waits.ts";

export interface ParkableOptions {
	waits: Waits;
	treeId(): TreeId;
	consumed(executions: ExecutionId[]): void;
}

interface Waiting {
	call: WaitingCall;
	/** Ends the tool without the answer; undefined once that has happened. */
	detach: (() => void) | undefined;
}

export class ParkableWaits {
	private readonly pi: ExtensionAPI;
	private readonly options: ParkableOptions;
	private readonly waiting = new Set<Waiting>();
	private over = false;

	constructor(pi: ExtensionAPI, options: ParkableOptions) {
		this.pi = pi;
		this.options = options;
	}

	/** The calls that have no answer yet. */
	calls(): WaitingCall[] {
		return [...this.waiting].map(({ call }) => call);
	}

	make(call: WaitingCall, signal: AbortSignal | undefined): Promise<{ answer: WaitAnswer } | { parked: true }> {
		return new Promise((resolve, reject) => {
			const waiting: Waiting = { call, detach: undefined };
			waiting.detach = () => {
				waiting.detach = undefined;
				resolve({ parked: true });
			};
			this.waiting.add(waiting);
			this.options.waits.make(call, signal).then(
				(answer) => (waiting.detach ? this.end(waiting, () => resolve({ answer })) : this.late(waiting, answer)),
				(error: Error) => (waiting.detach ? this.end(waiting, () => reject(error)) : this.lateError(waiting, error)),
			);
		});
	}

	/** Their tools end now. */
	detach(): void {
		for (const { detach } of this.waiting) detach?.();
	}

	/** Makes the calls again in which the process before this one was put away. */
	goOn(calls: readonly WaitingCall[]): void {
		for (const call of calls) {
			const waiting: Waiting = { call, detach: undefined };
			this.waiting.add(waiting);
			this.options.waits.make(call).then((answer) => this.late(waiting, answer), (error: Error) => this.lateError(waiting, error));
		}
	}

	/** The process ends; what has no answer is not answered here. */
	close(): void {
		this.over = true;
		this.options.waits.close();
	}

	private end(waiting: Waiting, then: () => void): void {
		this.waiting.delete(waiting);
		then();
	}

	private late(waiting: Waiting, answer: WaitAnswer): void {
		this.waiting.delete(waiting);
		const results = "tasks" in answer ? (answer.results ?? []) : "ended" in answer ? [answer.ended] : [];
		this.options.consumed(results.map((result) => result.execution));
		this.tell(`[the answer to the call in which you were put away]\n${"tasks" in answer ? foregroundText(results) : readText(answer, false)}`, results);
	}

	private lateError(waiting: Waiting, error: Error): void {
		if (this.over) return;
		this.waiting.delete(waiting);
		this.tell(`[the call in which you were put away failed: ${error.message}]`, []);
	}

	private tell(content: string, results: WorkerResult[]): void {
		const details = detailsFrom(results.map((result) => singleResult(this.options.treeId(), result)));
		this.pi.sendMessage({ customType: SUBAGENT_COMPLETION_TYPE, content, display: true, details }, { deliverAs: "steer", triggerTurn: true });
	}
}
