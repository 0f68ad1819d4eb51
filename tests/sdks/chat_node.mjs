// Chat completions by the `openai` package for Node: whole, streamed, and with a tool.
// Usage: node chat_node.mjs openai|azure
import OpenAI, { AzureOpenAI } from "openai";

const { ENGINE_HOST, ENGINE_KEY } = process.env;
const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const client =
  process.argv[2] === "azure"
    ? new AzureOpenAI({ apiKey: ENGINE_KEY, apiVersion: "2024-10-21", endpoint: `http://${ENGINE_HOST}` })
    : new OpenAI({ apiKey: ENGINE_KEY, baseURL: `http://${ENGINE_HOST}/openai/v1` });
const model = "voiceapp-embedded";
const ask = (content) => [{ role: "user", content }];

const whole = await client.chat.completions.create({ model, messages: ask("What is seven times six?") });

let streamed = "";
let usage = null;
const stream = await client.chat.completions.create({
  model,
  messages: ask("What is seven times six?"),
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}

const messages = ask("What is the weather in Paris?");
const called = await client.chat.completions.stream({ model, messages, tools: [WEATHER] }).finalMessage();
const calls = called.tool_calls ?? [];
const told = await client.chat.completions.create({
  model,
  messages: [
    ...messages,
    called,
    ...calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: '{"temperature": 21}' })),
  ],
  tools: [WEATHER],
});

let refusal = "";
try {
  await client.chat.completions.create({ model, messages: [] });
} catch (error) {
  refusal = `${error.status} ${error.code}`;
}

console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    streamed,
    tokens: usage?.total_tokens ?? 0,
    tool: {
      calls: calls.map((call) => JSON.parse(call.function.arguments)),
      answer: told.choices[0].message.content,
    },
    refusal,
  }),
);
