/**
 * What this process has used, from Pi's messages to cumulative reports: exact integers, nano-dollars. It sends nothing.
 */
import type { UsageReport } from "./protocol.ts";

/** Use as Pi's messages, tool results and compactions carry it. */
export interface PiUsage {
	input: number;
	output: number;
	cacheRead: number;
	cacheWrite: number;
	cost?: { total?: number };
}

/** The price of a model; all zero where nobody has said it. */
export interface Price {
	input: number;
	output: number;
	cacheRead?: number;
	cacheWrite?: number;
}

export function nanoDollars(usd: number | undefined): number | undefined {
	const nanos = Math.round((usd ?? NaN) * 1e9);
	return nanos >= 0 && nanos <= Number.MAX_SAFE_INTEGER ? nanos : undefined;
}

/** Tokens that cost nothing have no known price, unless the model's price says otherwise. */
export function isUnpriced(usage: PiUsage, price?: Price): boolean {
	const hasPrice = price !== undefined && [price.input, price.output, price.cacheRead, price.cacheWrite].some(Boolean);
	const cost = nanoDollars(usage.cost?.total);
	return cost === undefined || (cost === 0 && tokensOf(usage) > 0 && !hasPrice);
}

const tokensOf = (usage: PiUsage): number => whole(usage.input) + whole(usage.output) + whole(usage.cacheRead) + whole(usage.cacheWrite);
const whole = (count: number | undefined): number => (count !== undefined && count > 0 && Number.isFinite(count) ? Math.round(count) : 0);

export class UsageMeter {
	private readonly sum = { input: 0, output: 0, cache_read: 0, cache_write: 0, cost: 0, cost_unknown: false, turns: 0, tool_calls: 0 };
	private sequence = 0;
	private contextTokens: number | undefined;

	/** A message of the model. */
	turn(usage: PiUsage | undefined, price?: Price): void {
		this.sum.turns += 1;
		if (usage) this.add(usage, price);
		else this.sum.cost_unknown = true;
	}

	toolCall(): void {
		this.sum.tool_calls += 1;
	}

	/** What a tool or a compaction says that it used itself. */
	add(usage: PiUsage, price?: Price): void {
		if (isUnpriced(usage, price)) this.sum.cost_unknown = true;
		this.sum.input += whole(usage.input);
		this.sum.output += whole(usage.output);
		this.sum.cache_read += whole(usage.cacheRead);
		this.sum.cache_write += whole(usage.cacheWrite);
		this.sum.cost += nanoDollars(usage.cost?.total) ?? 0;
	}

	/** How large the context is now. */
	context(tokens: number | null | undefined): void {
		if (tokens != null) this.contextTokens = whole(tokens);
	}

	/** A report with the next number. */
	report(): UsageReport {
		this.sequence += 1;
		return { sequence: this.sequence, ...this.sum, ...(this.contextTokens === undefined ? {} : { context_tokens: this.contextTokens }) };
	}
}
