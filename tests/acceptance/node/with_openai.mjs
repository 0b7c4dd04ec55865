// A conversation through the official Node library; arguments: base URL, session, "stream" or "whole"; the script comes on standard input.
import OpenAI from "openai";
import { text } from "node:stream/consumers";

const [url, session, manner] = process.argv.slice(2);
const script = JSON.parse(await text(process.stdin));
const client = new OpenAI({ baseURL: url, apiKey: "sk-tested", defaultHeaders: { "X-Session-Id": session }, maxRetries: 0 });
const parameters = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const tools = Object.keys(script.results).map((name) => ({ type: "function", function: { name, description: `${name} a berth`, parameters } }));
const messages = [{ role: "system", content: script.system }];

async function ask() {
  const body = { model: script.model, messages, tools };
  if (manner === "stream") return (await client.chat.completions.stream(body).finalChatCompletion()).choices[0].message;
  return (await client.chat.completions.create(body)).choices[0].message;
}

const answers = [];
let results = 0;
for (const said of script.turns) {
  messages.push({ role: "user", content: said });
  let reply = await ask();
  while (reply.tool_calls?.length) {
    messages.push(reply);
    for (const call of reply.tool_calls) {
      const content = script.results[call.function.name][JSON.parse(call.function.arguments).name];
      messages.push({ role: "tool", tool_call_id: call.id, content });
      results += 1;
    }
    reply = await ask();
  }
  messages.push(reply);
  answers.push(reply.content);
}
console.log(JSON.stringify({ answers, results }));
