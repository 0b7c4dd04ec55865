// A conversation through Vercel's AI SDK; arguments: base URL, session, "stream" or "whole", "openai" or "compatible"; the script comes on
// standard input.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, streamText, tool } from "ai";
import { text } from "node:stream/consumers";
import { z } from "zod";

const [url, session, manner, provider] = process.argv.slice(2);
const script = JSON.parse(await text(process.stdin));
const options = { baseURL: url, apiKey: "sk-tested", headers: { "X-Session-Id": session } };
const model =
  provider === "openai" ? createOpenAI(options).chat(script.model) : createOpenAICompatible({ ...options, name: "proxy" })(script.model);
const inputSchema = z.object({ name: z.string() });
let results = 0;

function tooled(kind) {
  const execute = async ({ name }) => {
    results += 1;
    return script.results[kind][name];
  };
  return tool({ description: `${kind} a berth`, inputSchema, execute });
}

const tools = Object.fromEntries(Object.keys(script.results).map((kind) => [kind, tooled(kind)]));
const messages = [];
const answers = [];
for (const said of script.turns) {
  messages.push({ role: "user", content: said });
  const asked = { model, instructions: script.system, messages, tools, stopWhen: isStepCount(5), maxRetries: 0 };
  const run = manner === "stream" ? streamText(asked) : await generateText(asked);
  answers.push(await run.text);
  messages.push(...(await run.responseMessages));
  const warnings = await run.warnings;
  if (warnings?.length) console.error(JSON.stringify(warnings));
}
console.log(JSON.stringify({ answers, results }));
