/** The model of `script.ts` behind an OpenAI-compatible server, with use and prices that are known to the last token. */
import { createServer } from "node:http";
import type { Server } from "node:http";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Bed } from "./bed.ts";
import { exists, filled, stepFor } from "./script.ts";
import type { Said } from "./script.ts";

type Json = any;

export const MODEL = "scripted/fake-1";

/** Serves until the test ends; Pis of this bed know it as `scripted/fake-1`. */
export async function serveModel(t: TestContext, bed: Bed): Promise<void> {
	let asked = 0;
	const server: Server = createServer(async (request, response) => {
		const pieces: Buffer[] = [];
		for await (const piece of request) pieces.push(piece as Buffer);
		const { messages } = JSON.parse(Buffer.concat(pieces).toString());
		asked += 1;
		const gone = new AbortController();
		response.on("close", () => gone.abort());
		try {
			await answer(response, messages.map(plain), asked, gone.signal);
		} catch {
			response.destroy();
		}
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	t.after(() => server.close());
	const { port } = server.address() as AddressInfo;
	writeFileSync(join(bed.agentDir, "models.json"), JSON.stringify({
		providers: {
			scripted: {
				baseUrl: `http://127.0.0.1:${port}/v1`, api: "openai-completions", apiKey: "dummy", compat: { supportsDeveloperRole: false, supportsReasoningEffort: false },
				models: [{
					id: "fake-1", name: "Fake 1", reasoning: false, input: ["text"], contextWindow: 128000, maxTokens: 4096,
					cost: { input: 1.1, output: 5.3, cacheRead: 0.13, cacheWrite: 1.25 },
				}],
			},
		},
	}));
}

/** Roles as Pi's own providers see them. */
function plain(message: Json): Said {
	const role = message.role === "tool" ? "toolResult" : message.role;
	return { role, content: message.content ?? "" };
}

async function answer(response: Json, messages: Said[], asked: number, signal: AbortSignal): Promise<void> {
	const step = stepFor(messages) as Json;
	if (step.fail) {
		response.writeHead(400, { connection: "close", "content-type": "application/json" });
		return response.end(JSON.stringify({ error: { message: step.fail } }));
	}
	if (step.until) await exists(step.until, signal);
	// A connection that is kept alive makes one version of Pi wait for its end.
	response.writeHead(200, { connection: "close", "content-type": "text/event-stream" });
	const send = (chunk: Json) => response.write(`data: ${JSON.stringify({ id: `chat-${asked}`, object: "chat.completion.chunk", created: 1, model: "fake-1", ...chunk })}\n\n`);
	const delta = step.call
		? { tool_calls: step.call.map(([name, args]: [string, Json], index: number) => ({ index, id: `call_${asked}_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } })) }
		: { content: filled(step.say, messages) };
	send({ choices: [{ index: 0, delta: { role: "assistant", ...delta } }] });
	send({ choices: [{ index: 0, delta: {}, finish_reason: step.call ? "tool_calls" : "stop" }] });
	const [prompt, cached, completion] = [1000 + 17 * asked, 100 * (1 + (asked % 4)), 30 + asked];
	send({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, prompt_tokens_details: { cached_tokens: cached } } });
	response.end("data: [DONE]\n\n");
}
