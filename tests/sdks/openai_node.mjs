// The `openai` package for Node: its GA class, also as Azure's, and its beta class.
// Usage: node openai_node.mjs openai|azure|beta-azure
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import OpenAI, { AzureOpenAI } from "openai";
import { OpenAIRealtimeWS as BetaRealtimeWS } from "openai/beta/realtime/ws";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const { ENGINE_HOST, ENGINE_KEY, SPEECH } = process.env;
const [host, port] = ENGINE_HOST.split(":");
// The package knows only wss; the server on this machine has no certificate.
const options = { createConnection: () => connect(Number(port), host) };
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Get the weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const azureClient = () =>
  new AzureOpenAI({ apiKey: ENGINE_KEY, apiVersion: "2025-04-01-preview", endpoint: `https://${ENGINE_HOST}` });

const OPEN = {
  openai: async () =>
    new OpenAIRealtimeWS(
      { model: "any", options },
      new OpenAI({ apiKey: ENGINE_KEY, baseURL: `https://${ENGINE_HOST}/openai/v1` }),
    ),
  azure: () => OpenAIRealtimeWS.azure(azureClient(), { deploymentName: "any", options }),
  "beta-azure": () => BetaRealtimeWS.azure(azureClient(), { deploymentName: "any", options }),
};

const kind = process.argv[2];
const beta = kind === "beta-azure";
const named = (name) => (beta ? name.replace("output_", "") : name);
const client = await OPEN[kind]();
const errors = [];
client.on("error", (error) => errors.push(String(error)));

let events = [];
let wake = () => {};
client.on("event", (event) => {
  events.push(event);
  wake();
});

/** Wait until so many events of a type have come since the turn began; return the last. */
async function until(type, count = 1) {
  for (;;) {
    const found = events.filter((event) => event.type === type);
    if (found.length >= count) return found[count - 1];
    if (errors.length) throw new Error(errors.join("\n"));
    await new Promise((resolve) => (wake = resolve));
  }
}

const joined = (type, name = "delta") =>
  events
    .filter((event) => event.type === type)
    .map((event) => event[name])
    .join("");

/** Begin a turn in which the answer is spoken or written. */
async function begin({ audio, tools = [] }) {
  events = [];
  const transcription = { model: "whisper-1" };
  const session = beta
    ? { modalities: audio ? ["audio", "text"] : ["text"], input_audio_transcription: transcription }
    : { type: "realtime", output_modalities: [audio ? "audio" : "text"], audio: { input: { transcription } } };
  client.send({ type: "session.update", session: { ...session, tools } });
  await until("session.updated");
}

function say(text) {
  const item = { type: "message", role: "user", content: [{ type: "input_text", text }] };
  client.send({ type: "conversation.item.create", item });
  client.send({ type: "response.create" });
}

async function textTurn() {
  await begin({ audio: false });
  say("What is seven times six?");
  await until("response.done");
  return { answer: joined(named("response.output_text.delta")) };
}

async function audioTurn() {
  await begin({ audio: true });
  const speech = readFileSync(SPEECH);
  for (let start = 0; start < speech.length; start += 4800) {
    const audio = speech.subarray(start, start + 4800).toString("base64");
    client.send({ type: "input_audio_buffer.append", audio });
  }
  await until("response.done");
  const heard = await until("conversation.item.input_audio_transcription.completed");
  const audio = events.filter((event) => event.type === named("response.output_audio.delta"));
  return {
    heard: heard.transcript,
    answer: joined(named("response.output_audio_transcript.delta")),
    bytes: audio.reduce((sum, event) => sum + Buffer.from(event.delta, "base64").length, 0),
  };
}

async function toolTurn() {
  await begin({ audio: false, tools: [WEATHER] });
  say("What is the weather in Paris?");
  const call = await until("response.function_call_arguments.done");
  const item = { type: "function_call_output", call_id: call.call_id, output: '{"celsius": 21}' };
  client.send({ type: "conversation.item.create", item });
  await until("response.done");
  client.send({ type: "response.create" });
  await until("response.done", 2);
  const calls = events.filter((event) => event.type === "response.function_call_arguments.done");
  return {
    calls: calls.map((event) => JSON.parse(event.arguments)),
    answer: joined(named("response.output_text.delta")),
  };
}

await until("session.created");
const told = { text: await textTurn(), audio: await audioTurn(), tool: await toolTurn(), errors };
client.close();
console.log(JSON.stringify(told));
