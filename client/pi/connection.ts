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

/** How long the daemon may be silent before a call fails. */
export interface Patience {
	/** With an answer, while it is there. */
	answerMs: number;
	/** While it is away. */
	backMs: number;
}

/** That of somebody who sits before it. A worker has none: to it the end of the broker is a pause. */
export const BRIEF: Patience = { answerMs: 30_000, backMs: 60_000 };

/** Answered when the last process is gone, which takes as long as it takes. */
const SLOW: readonly (keyof Methods)[] = ["stop", "interrupt", "close"];

export interface ConnectionOptions {
	/** Where the daemon listens; asked before each try, and may start it. An error of the first try ends the connection. */
	reach(): Promise<string>;
	/** Who is calling: asked before each hello. */
	greeting(): Greeting;
	/** After each welcome, before anything that was pushed. */
	onWelcome?(welcome: Welcome): void;
	onNotice?(notice: Notice): void;
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
	private end: Error | undefined;

	constructor(options: ConnectionOptions) {
		this.options = options;
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
		const words = this.greeted ? "no answer from roostd" : "roostd is away and has not come back";
		call.timer = setTimeout(() => this.giveUp(id, `${words} within ${ms / 1000} s`), ms);
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
		this.socket?.destroy();
		for (const { reject, timer } of this.pending.values()) {
			clearTimeout(timer);
			reject(error);
		}
		this.pending.clear();
	}

	private async connect(): Promise<void> {
		try {
			const path = await this.options.reach();
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
		this.socket = socket;
		socket.on("connect", () => {
			const client = "roost-pi";
			const hello: Hello = { protocol_min: PROTOCOL_VERSION, protocol_max: PROTOCOL_VERSION, client, ...this.options.greeting() };
			socket.write(encode(0, "hello", hello));
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
			const wasGreeted = this.greeted;
			this.greeted = false;
			// Tries that fail do not make its absence begin anew.
			if (wasGreeted) for (const id of this.pending.keys()) this.bound(id);
			this.again();
		});
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
		return kind === "draining" || (kind === "limit" && !this.options.patience);
	}

	private fail(error: Error): void {
		if (this.end) return;
		this.close(error);
		this.options.onEnd?.(error);
	}
}

function encode<M extends keyof Methods>(id: number, method: M, params: Methods[M]["params"]): string {
	return `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
}
