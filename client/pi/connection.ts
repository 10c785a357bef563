/**
 * A connection to the daemon that outlives its socket: calls with typed answers, notifications, and the same calls again, under the
 * same request ids, when it had to be made anew. It knows no role and no Pi.
 */
import { randomUUID } from "node:crypto";
import * as net from "node:net";
import { LINE_BYTES_MAX, LineReader } from "./lines.ts";
import { PROTOCOL_VERSION } from "./protocol.ts";
import type { Answer, ErrorKind, Hello, Methods, Notifications, Welcome } from "./protocol.ts";

const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 2_000;

/** Refusals of a hello that no further try changes. */
const FINAL: readonly ErrorKind[] = [
	"unknown_identity", "stale_epoch", "already_connected", "protocol_version", "no_tree", "tree_closed", "invalid_params", "read_only",
];

export type Greeting = Omit<Hello, "protocol_min" | "protocol_max" | "client">;

/** A notification: its method and what it carries. */
export type Notice = { [M in keyof Notifications]: { method: M; params: Notifications[M] } }[keyof Notifications];

/** How long the daemon may be silent before a call or a hello fails. */
export interface Patience {
	/** With an answer, while it is there; absent for calls that wait for others. */
	answerMs?: number;
	/** While it is away. */
	backMs: number;
}

/** That of somebody who sits before it. A worker has none: to it the end of the broker is a pause. */
export const BRIEF = { answerMs: 30_000, backMs: 60_000 } as const satisfies Patience;

/** Answered when the last process is gone, which takes as long as it takes. */
const SLOW: readonly (keyof Methods)[] = ["stop", "interrupt", "close"];

export interface ConnectionOptions {
	/**
	 * Where the daemon listens; asked before each try. `isMissing`: the try before this one found nobody there, so it may be started. An
	 * error ends a connection that was never greeted.
	 */
	reach(isMissing: boolean): Promise<string>;
	/** Who is calling: asked before each hello. */
	greeting(): Greeting;
	/** After each welcome, before anything that was pushed. */
	onWelcome?(welcome: Welcome): void;
	onNotice?(notice: Notice): void;
	/** A daemon that was there has been away for longer than patience has; it is still looked for. */
	onAway?(error: Error): void;
	/** It is over and does not come back. */
	onEnd?(error: Error): void;
	/** Without it calls and hellos wait for as long as it takes. */
	patience?: Patience;
}

/** An error that the daemon answered with. */
export class Refused extends Error {
	readonly kind: ErrorKind;
	readonly hint: string | undefined;

	constructor(message: string, kind: ErrorKind, hint?: string) {
		super(hint ? `${message} (${hint})` : message);
		this.kind = kind;
		this.hint = hint;
	}
}

export function isRefusal(error: unknown, ...kinds: ErrorKind[]): boolean {
	return error instanceof Refused && kinds.includes(error.kind);
}

export const requestId = (): string => randomUUID();

interface Pending {
	method: keyof Methods;
	line: string;
	timer?: NodeJS.Timeout | undefined;
	resolve(result: unknown): void;
	reject(error: Error): void;
}

export class Connection {
	private readonly options: ConnectionOptions;
	private readonly pending = new Map<number, Pending>();
	private socket: net.Socket | undefined;
	private greeted = false;
	private everGreeted = false;
	private lastId = 0;
	private pauseMs = PAUSE_MS_MIN;
	private timer: NodeJS.Timeout | undefined;
	/** Runs until the next welcome. */
	private absence: NodeJS.Timeout | undefined;
	private isMissing = false;
	private end: Error | undefined;

	constructor(options: ConnectionOptions) {
		this.options = options;
		this.isAway();
		void this.connect();
	}

	/** Makes a call. It is made again after a break, so it must be one that a repeat does not do twice. The signal gives it up. */
	async call<M extends keyof Methods>(method: M, params: Methods[M]["params"], signal?: AbortSignal): Promise<Methods[M]["result"]> {
		if (this.end) throw this.end;
		if (signal?.aborted) throw new Error(`${method}: given up`);
		const id = ++this.lastId;
		const line = encode(id, method, params);
		if (Buffer.byteLength(line) > LINE_BYTES_MAX) throw new Error(`${method}: more than ${LINE_BYTES_MAX} bytes`);
		const giveUp = () => this.giveUp(id, "given up; roostd may have done it");
		signal?.addEventListener("abort", giveUp, { once: true });
		try {
			return await new Promise<unknown>((resolve, reject) => {
				this.pending.set(id, { method, line, resolve, reject });
				this.bound(id);
				if (this.greeted) this.socket?.write(line);
			}) as Methods[M]["result"];
		} finally {
			signal?.removeEventListener("abort", giveUp);
		}
	}

	/** From now on its answer may take this long. */
	private bound(id: number): void {
		const { patience } = this.options;
		const call = this.pending.get(id);
		if (!patience || !call) return;
		clearTimeout(call.timer);
		call.timer = undefined;
		if (this.greeted && SLOW.includes(call.method)) return;
		const ms = this.greeted ? patience.answerMs : patience.backMs;
		if (ms === undefined) return;
		const words = this.greeted ? noAnswer(ms) : notBack(ms);
		call.timer = setTimeout(() => this.giveUp(id, words), ms);
	}

	private isAway(): void {
		const { patience } = this.options;
		if (!patience) return;
		this.absence = setTimeout(() => {
			const error = new Error(notBack(patience.backMs));
			if (this.everGreeted) this.options.onAway?.(error);
			else this.fail(error);
		}, patience.backMs);
	}

	private giveUp(id: number, words: string): void {
		const call = this.pending.get(id);
		if (!call) return;
		clearTimeout(call.timer);
		this.pending.delete(id);
		call.reject(new Error(`${call.method}: ${words}`));
	}

	/** Ends it: what waits for an answer gets this error instead. */
	close(error = new Error("the connection to roostd was closed")): void {
		if (this.end) return;
		this.end = error;
		clearTimeout(this.timer);
		clearTimeout(this.absence);
		this.socket?.destroy();
		for (const { reject, timer } of this.pending.values()) {
			clearTimeout(timer);
			reject(error);
		}
		this.pending.clear();
	}

	private async connect(): Promise<void> {
		try {
			const path = await this.options.reach(this.isMissing);
			if (!this.end) this.dial(path);
		} catch (error) {
			// A daemon that was there comes back: starting it may fail while another one does the same.
			if (this.everGreeted) this.again();
			else this.fail(error as Error);
		}
	}

	private again(): void {
		if (this.end) return;
		this.timer = setTimeout(() => void this.connect(), this.pauseMs);
		this.pauseMs = Math.min(PAUSE_MS_MAX, this.pauseMs * 2);
	}

	private dial(path: string): void {
		const socket = net.createConnection(path);
		const reader = new LineReader();
		let hello: NodeJS.Timeout | undefined;
		this.socket = socket;
		socket.on("connect", () => {
			const client = "roost-pi";
			const said: Hello = { protocol_min: PROTOCOL_VERSION, protocol_max: PROTOCOL_VERSION, client, ...this.options.greeting() };
			socket.write(encode(0, "hello", said));
			const ms = this.options.patience?.answerMs;
			if (ms !== undefined) hello = setTimeout(() => this.unheard(socket, ms), ms);
		});
		socket.on("data", (chunk) => {
			try {
				for (const line of reader.push(chunk)) this.take(JSON.parse(line) as Answer);
			} catch (error) {
				socket.destroy(error as Error);
			}
		});
		// An error is always followed by `close`.
		socket.on("error", () => {});
		socket.on("close", () => {
			clearTimeout(hello);
			if (this.end) return;
			const wasGreeted = this.greeted;
			this.greeted = false;
			this.isMissing = !wasGreeted;
			// Tries that fail do not make its absence begin anew.
			if (wasGreeted) {
				this.isAway();
				for (const id of this.pending.keys()) this.bound(id);
			}
			this.again();
		});
	}

	/** A hello has no answer. */
	private unheard(socket: net.Socket, ms: number): void {
		if (this.greeted) return;
		if (this.everGreeted) socket.destroy();
		else this.fail(new Error(`hello: ${noAnswer(ms)}`));
	}

	private take(answer: Answer): void {
		if (answer.method) return this.options.onNotice?.({ method: answer.method, params: answer.params } as Notice);
		const error = answer.error ? new Refused(answer.error.message, answer.error.data.kind, answer.error.data.hint ?? undefined) : undefined;
		if (answer.id === 0) return this.welcomed(answer.result as Welcome, error);
		// Without an id it is about the connection, which ends now.
		const pending = answer.id == null ? undefined : this.pending.get(answer.id);
		if (!pending) return;
		this.pending.delete(answer.id as number);
		clearTimeout(pending.timer);
		if (error) pending.reject(error);
		else pending.resolve(answer.result);
	}

	private welcomed(welcome: Welcome, error: Refused | undefined): void {
		if (error && FINAL.includes(error.kind)) return this.fail(error);
		if (error && !this.everGreeted && !this.mayPass(error)) return this.fail(error);
		if (error) return this.socket?.destroy() as undefined;
		this.everGreeted = true;
		this.pauseMs = PAUSE_MS_MIN;
		clearTimeout(this.absence);
		this.options.onWelcome?.(welcome);
		// Calls of the welcome are among these.
		this.greeted = true;
		for (const [id, { line }] of this.pending) {
			this.bound(id);
			this.socket?.write(line);
		}
	}

	/** A broker that is just leaving is followed by the next one, and who waits anyway waits for a place. */
	private mayPass({ kind }: Refused): boolean {
		return kind === "draining" || (kind === "limit" && this.options.patience?.answerMs === undefined);
	}

	private fail(error: Error): void {
		if (this.end) return;
		this.close(error);
		this.options.onEnd?.(error);
	}
}

const noAnswer = (ms: number): string => `no answer from roostd within ${ms / 1000} s`;
const notBack = (ms: number): string => `roostd is away and has not come back within ${ms / 1000} s`;

function encode<M extends keyof Methods>(id: number, method: M, params: Methods[M]["params"]): string {
	return `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
}
