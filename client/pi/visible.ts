/** Text of somebody else, safe for a terminal: the same as the daemon's own command does it (`client/src/output.rs`). Pure. */

/** C0, DEL, C1, and the marks that turn the direction of a line around. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Control characters become visible; newline and tab stay. */
export function visible(text: string): string {
	return text.replace(CONTROL, (char) => (char === "\n" || char === "\t" ? char : written(char)));
}

/** The same for a text that must stay on its line. */
export function visibleLine(text: string): string {
	return text.replace(CONTROL, written);
}

function written(char: string): string {
	const code = char.charCodeAt(0);
	return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}
