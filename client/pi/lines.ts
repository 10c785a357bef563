/**
 * Bytes to lines of the protocol: a line ends at LF alone and is bounded. It knows no JSON and no socket.
 */

/** The longest line that either end sends (`LINE_BYTES_MAX` of the daemon). */
export const LINE_BYTES_MAX = 8 * 1024 * 1024;

const LF = 0x0a;

export class LineReader {
	private pieces: Buffer[] = [];
	private bytes = 0;

	/** The lines that are whole now, without their ends. Throws when one is longer than it may be. */
	push(chunk: Buffer): string[] {
		const lines: string[] = [];
		let from = 0;
		for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
			this.keep(chunk.subarray(from, at));
			lines.push(Buffer.concat(this.pieces).toString("utf8"));
			this.pieces = [];
			this.bytes = 0;
			from = at + 1;
		}
		this.keep(chunk.subarray(from));
		return lines.filter((line) => line.trim() !== "");
	}

	private keep(piece: Buffer): void {
		this.bytes += piece.length;
		if (this.bytes > LINE_BYTES_MAX) throw new Error(`a line of more than ${LINE_BYTES_MAX} bytes`);
		if (piece.length > 0) this.pieces.push(piece);
	}
}
