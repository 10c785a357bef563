/** Whether Node and Pi are new enough, in one line that says what to do when they are not. */
const NODE_MIN = [22, 19] as const;
const PI_MIN = [0, 84, 2] as const;

export function tooOld(node: string, pi: string | undefined): string | undefined {
	if (isBelow(node, NODE_MIN)) return `Subagents are off: Node ${node} is too old; run Pi with Node ${NODE_MIN.join(".")} or newer`;
	if (pi && isBelow(pi, PI_MIN)) return `Subagents are off: Pi ${pi} is too old; update it to ${PI_MIN.join(".")} or newer`;
	return undefined;
}

function isBelow(version: string, least: readonly number[]): boolean {
	const parts = version.replace(/^v/, "").split(/[.-]/).map(Number);
	for (const [at, wanted] of least.entries()) {
		const part = parts[at] ?? 0;
		if (part !== wanted) return part < wanted;
	}
	return false;
}
