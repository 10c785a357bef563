/**
 * Calls of a worker that wait for its subagents, and in which it may be put away: their tools end without the answer, which comes as a
 * message, in this process or, made again under the same request id, in the next one. It knows no Pi.
 */
import type { WorkerResult } from "./protocol.ts";
import { foregroundText, readText } from "./texts.ts";
import type { WaitAnswer, WaitingCall, Waits } from "./waits.ts";

export interface ParkableOptions {
	waits: Waits;
	/** An answer that comes too late for its tool. */
	answered(request: string, text: string, results: WorkerResult[]): void;
}

interface Waiting {
	call: WaitingCall;
	/** Ends the tool without the answer; undefined once that has happened. */
	detach: (() => void) | undefined;
	/** The answer is there, and not yet in the conversation. */
	isAnswered: boolean;
}

export class ParkableWaits {
	private readonly options: ParkableOptions;
	private readonly waiting = new Set<Waiting>();
	private over = false;

	constructor(options: ParkableOptions) {
		this.options = options;
	}

	/** The calls whose answers are not in the conversation: whoever goes on from here makes them again. */
	calls(): WaitingCall[] {
		return [...this.waiting].map(({ call }) => call);
	}

	/** Whether any of them has no answer yet. */
	isWaiting(): boolean {
		return [...this.waiting].some(({ isAnswered }) => !isAnswered);
	}

	make(call: WaitingCall, signal: AbortSignal | undefined): Promise<{ answer: WaitAnswer } | { parked: true }> {
		return new Promise((resolve, reject) => {
			const waiting: Waiting = { call, detach: undefined, isAnswered: false };
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
			const waiting: Waiting = { call, detach: undefined, isAnswered: false };
			this.waiting.add(waiting);
			this.options.waits.make(call).then((answer) => this.late(waiting, answer), (error: Error) => this.lateError(waiting, error));
		}
	}

	/** The answer of this call has entered the conversation. */
	taken(request: string): void {
		for (const waiting of this.waiting) if (requestOf(waiting.call) === request) this.waiting.delete(waiting);
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
		const results = "tasks" in answer ? (answer.results ?? []) : "ended" in answer ? [answer.ended] : [];
		this.tell(waiting, `[the answer to the call in which you were put away]\n${"tasks" in answer ? foregroundText(results) : readText(answer, false)}`, results);
	}

	private lateError(waiting: Waiting, error: Error): void {
		if (!this.over) this.tell(waiting, `[the call in which you were put away failed: ${error.message}]`, []);
	}

	private tell(waiting: Waiting, text: string, results: WorkerResult[]): void {
		waiting.isAnswered = true;
		this.options.answered(requestOf(waiting.call), text, results);
	}
}

/** Each of these calls has one. */
export function requestOf(call: WaitingCall): string {
	return call.params.request_id ?? "";
}
