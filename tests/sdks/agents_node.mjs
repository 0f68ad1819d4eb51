// The `@openai/agents-realtime` package: a program of its own, which tells what it had of three turns.
// Usage: node agents_node.mjs
import { readFileSync } from "node:fs";
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from "@openai/agents-realtime";
import { z } from "zod";
// The package ignores, without a word, each event that does not fit its own schema; this is how it judges.
import { parseRealtimeEvent } from "./node_modules/@openai/agents-realtime/dist/openaiRealtimeEvents.mjs";

const { ENGINE_HOST, ENGINE_KEY, SPEECH } = process.env;
const url = `ws://${ENGINE_HOST}/openai/v1/realtime?model=any`;
const calls = [];
const errors = [];
const kinds = new Set();
const weather = tool({
  name: "get_weather",
  description: "Get the weather of a city",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    calls.push({ city });
    return '{"celsius": 21}';
  },
});

/** Open a session, hold turns in it, and close it. */
async function inSession(modality, hold) {
  const agent = new RealtimeAgent({ name: "Clerk", instructions: "You are brief.", tools: [weather] });
  const session = new RealtimeSession(agent, {
    transport: new OpenAIRealtimeWebSocket({ url }),
    config: { outputModalities: [modality], audio: { input: { turnDetection: { type: "server_vad" } } } },
  });
  session.on("transport_event", (event) => {
    const { isGeneric } = parseRealtimeEvent({ data: JSON.stringify(event) });
    kinds.add(event.type);
    if (isGeneric) errors.push(`refused: ${JSON.stringify(event)}`);
  });
  session.on("error", ({ error }) => errors.push(JSON.stringify(error)));
  await session.connect({ apiKey: ENGINE_KEY, url });
  try {
    await hold(session);
  } finally {
    session.close();
  }
}

/** Let `begin` start a turn; return all of its answers' text when so many responses are over. */
function turn(session, begin, responses = 1) {
  return new Promise((resolve) => {
    const answers = [];
    const take = (_context, _agent, output) => {
      answers.push(output);
      if (answers.length === responses) {
        session.off("agent_end", take);
        resolve(answers.join(" "));
      }
    };
    session.on("agent_end", take);
    begin();
  });
}

/** Ask the question aloud. */
function speak(session) {
  const speech = new Uint8Array(readFileSync(SPEECH));
  for (let start = 0; start < speech.length; start += 4800) {
    session.sendAudio(speech.slice(start, start + 4800).buffer);
  }
}

/** Wait until the history holds what the user said. */
function heard(session) {
  return new Promise((resolve) => {
    session.on("history_updated", (history) => {
      const said = history.filter((item) => item.role === "user").flatMap((item) => item.content);
      const words = said.map((part) => part.transcript ?? "").join("");
      if (words) resolve(words);
    });
  });
}

const told = { errors };
await inSession("text", async (session) => {
  told.text = { answer: await turn(session, () => session.sendMessage("What is seven times six?")) };
  const ask = () => session.sendMessage("What is the weather in Paris?");
  told.tool = { answer: await turn(session, ask, 2), calls };
});
await inSession("audio", async (session) => {
  let bytes = 0;
  session.on("audio", ({ data }) => (bytes += data.byteLength));
  const listening = heard(session);
  const answer = await turn(session, () => speak(session));
  told.audio = { answer, bytes, heard: await listening };
});
await inSession("audio", async (session) => {
  let cuts = 0;
  session.on("audio_interrupted", () => (cuts += 1));
  const listening = heard(session);
  // The response with the story ends, cut short, and then the one with the answer.
  const answer = await turn(
    session,
    () => {
      session.once("audio", () => speak(session));
      session.sendMessage("Tell me a story.");
    },
    2,
  );
  told.cut = { answer, cuts, heard: await listening };
});
if (!kinds.has("response.done")) errors.push("The package's view of the events was not seen.");
console.log(JSON.stringify(told));
process.exit(0);
