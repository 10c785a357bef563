/**
 * What is shown of the tree around the editor, and Escape. Lines come from `status.ts`; a tick redraws them and reads nothing. Clearing
 * a widget stops nobody.
 */
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isKeyRelease, matchesKey, truncateToWidth } from "@earendil-works/pi-tui";
import { collectCombinedUsageStatusLine } from "./combined.ts";
import type { Root } from "./root.ts";
import { runningLine, waitingLine } from "./status.ts";
import { visibleLine } from "./visible.ts";

const TICK_MS = 250;
const LIVE = "subagents-live";
const USAGE = "subagents-usage";

export class Surfaces {
	private readonly root: Root;
	private readonly ctx: ExtensionContext;
	private timer: NodeJS.Timeout | undefined;
	private tick = 0;
	private usage: string | undefined;
	private shown = { live: "", usage: "" };
	private redraw: (() => void) | undefined;
	private readonly stopListening: (() => void) | undefined;

	constructor(root: Root, ctx: ExtensionContext) {
		this.root = root;
		this.ctx = ctx;
		if (ctx.mode === "tui") this.stopListening = ctx.ui.onTerminalInput((data) => this.key(data));
	}

	/** The tree, the session or the lead's business has changed. */
	update(): void {
		if (!this.ctx.hasUI) return;
		this.usage = collectCombinedUsageStatusLine(this.ctx.sessionManager.getEntries(), { tree: this.root.treeId(), workers: this.root.tree.usage });
		this.draw();
	}

	end(): void {
		clearInterval(this.timer);
		this.stopListening?.();
	}

	private draw(): void {
		const isActive = this.root.tree.active() > 0;
		if (this.ctx.mode === "tui" && isActive && !this.timer) {
			this.timer = setInterval(() => {
				this.tick += 1;
				this.redraw?.();
			}, TICK_MS);
		} else if (!isActive) {
			clearInterval(this.timer);
			this.timer = undefined;
		}
		if (this.ctx.mode === "tui") this.drawComponents(isActive);
		else this.drawLines();
	}

	private live(): string[] {
		const { tree, deliveries } = this.root;
		const running = runningLine(tree.workers, tree.since, Date.now());
		if (!running) return [];
		return deliveries.isBusy() ? [running] : [waitingLine(this.tick), running];
	}

	private drawComponents(isActive: boolean): void {
		const { ui } = this.ctx;
		if (isActive !== (this.shown.live !== "")) {
			this.shown.live = isActive ? "shown" : "";
			ui.setWidget(LIVE, isActive ? (tui) => {
				this.redraw = () => tui.requestRender();
				return { render: (width) => this.live().map((line) => truncateToWidth(line, width)), invalidate: () => {} };
			} : undefined, { placement: "aboveEditor" });
		}
		if (this.usage !== undefined && this.shown.usage === "") {
			this.shown.usage = "shown";
			ui.setWidget(USAGE, (_tui, theme) => ({
				render: (width) => [theme.fg("dim", truncateToWidth(this.usage ?? "", width))], invalidate: () => {},
			}), { placement: "belowEditor" });
		}
		this.redraw?.();
	}

	/** For a host that draws itself: lines of text, when they have changed. Nothing that only a clock changes. */
	private drawLines(): void {
		const { tree, deliveries } = this.root;
		const running = runningLine(tree.workers, new Map(), 0)?.replaceAll(" 0s", "");
		const live = running ? [...(deliveries.isBusy() ? [] : [waitingLine(0).slice(2)]), running] : [];
		if (live.join("\n") !== this.shown.live) this.ctx.ui.setWidget(LIVE, live.length > 0 ? live : undefined, { placement: "aboveEditor" });
		if (this.usage !== undefined && this.usage !== this.shown.usage) this.ctx.ui.setWidget(USAGE, [this.usage], { placement: "belowEditor" });
		this.shown = { live: live.join("\n"), usage: this.usage ?? "" };
	}

	/** Escape stops everything, and keeps its meaning for Pi when there is nothing to stop, when a dialog of ours is open, and when Pi is busy. */
	private key(data: string): { consume?: boolean } | undefined {
		if (!matchesKey(data, "escape") || isKeyRelease(data) || this.root.hasDialog() || this.root.tree.active() === 0) return undefined;
		void this.root.interrupt().then(
			(stopped) => stopped > 0 && this.ctx.ui.notify(`Stopped ${stopped} subagent${stopped === 1 ? "" : "s"}`, "info"),
			(error: Error) => this.ctx.ui.notify(visibleLine(error.message), "error"),
		);
		return this.ctx.isIdle() ? { consume: true } : undefined;
	}
}
