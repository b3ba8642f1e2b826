// A real language model behind OpenAI's chat completions: SmolLM2-135M-Instruct on the CPU, by llama.cpp.
//   node server.mjs MODEL.gguf [--threads N] [--max-tokens N] [--seconds N]
// Prints the URL it listens on as one line, and a line per request on the standard error. Ends with its standard input.
// Requests are answered one after the other, and each answer has an end: so many tokens, so many seconds.
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { ChatMLChatWrapper, LlamaChat, TokenMeter, getLlama } from "node-llama-cpp";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    threads: { type: "string", default: "1" },
    "max-tokens": { type: "string", default: "96" },
    seconds: { type: "string", default: "90" },
  },
});
const [threads, maxTokens, seconds] = ["threads", "max-tokens", "seconds"].map((name) => Number(values[name]));

// It often forgets the word `call` of the syntax `||call: name({…})`, and means a call all the same.
class Wrapper extends ChatMLChatWrapper {
  constructor() {
    super();
    const { functions, ...settings } = this.settings;
    const call = { ...functions.call, prefixAlternateMatches: ["||"] };
    Object.defineProperty(this, "settings", { value: { ...settings, functions: { ...functions, call } } });
  }
}

// A model of this size calls functions only if it has seen some being called.
const example = (text, name, params, result, said) =>
  [{ type: "user", text }, { type: "model", response: [{ type: "functionCall", name, params, result }, said] }];
const EXAMPLES = [
  ...example("What time is it in Lima?", "get_time", { city: "Lima" }, "09:40", "It is 09:40 in Lima."),
  ...example('Count the words of "red blue green".', "count_words", { text: "red blue green" }, "3", "There are 3 words."),
];

const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
const model = await llama.loadModel({ modelPath: positionals[0] });
const sequence = (await model.createContext({ contextSize: 8192, threads })).getSequence();
const chat = new LlamaChat({ contextSequence: sequence, chatWrapper: new Wrapper() });

const text = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

// Only what a grammar can hold the model to: the library refuses keywords that it does not know. For the library every
// property is required. A model must be free to leave out those that are not, or it would be made to fill the traps.
function grammar(schema) {
  if (Array.isArray(schema?.enum)) return { enum: schema.enum };
  const { type, description } = schema ?? {};
  if (type === "array") return { type, description, items: grammar(schema.items), maxItems: 4 };
  if (type !== "object" && !schema?.properties) {
    return ["number", "integer", "boolean"].includes(type) ? { type, description } : { type: "string", description };
  }
  const all = Object.keys(schema.properties ?? {});
  const some = (names) => ({ type: "object", properties: Object.fromEntries(names.map((name) => [name, grammar(schema.properties[name])])) });
  const optional = all.filter((name) => !schema.required?.includes(name)).slice(0, 6);
  const choices = [all, ...optional.map((one) => all.filter((name) => name === one || !optional.includes(name)))];
  if (optional.length) choices.push(all.filter((name) => !optional.includes(name)));
  const distinct = [...new Map(choices.map((names) => [names.join("\n"), some(names)])).values()].reverse();
  return distinct.length > 1 ? { oneOf: distinct } : distinct[0];
}

// Whoever wrote the conversation may have written arguments that no model did.
function object(json) {
  try {
    return JSON.parse(json || "{}");
  } catch {
    return { arguments: json };
  }
}

// The messages of OpenAI as those of the library, where a result stands beside its call.
function history(messages, examples) {
  const items = [];
  const calls = new Map();
  const said = () => {
    if (items.at(-1)?.type !== "model") items.push({ type: "model", response: [] });
    return items.at(-1).response;
  };
  for (const { role, content, tool_calls, tool_call_id } of messages) {
    if (role === "tool") {
      if (calls.has(tool_call_id)) calls.get(tool_call_id).result = text(content);
    } else if (role === "assistant") {
      if (content) said().push(text(content));
      for (const { id, function: called } of tool_calls ?? []) {
        calls.set(id, { type: "functionCall", name: called.name, params: object(called.arguments), result: "" });
        said().push(calls.get(id));
      }
    } else {
      items.push({ type: role === "user" ? "user" : "system", text: text(content) });
    }
  }
  said();
  const first = items.findIndex(({ type }) => type !== "system");
  return [...items.slice(0, first), ...examples, ...items.slice(first)];
}

async function answer({ messages, tools, temperature, seed, max_tokens, max_completion_tokens, tool_choice }, gone) {
  const offered = tool_choice === "none" ? [] : (tools ?? []).map((tool) => tool.function);
  const functions = offered.map(({ name, description, parameters }) => [name, { description, params: grammar(parameters) }]);
  const before = sequence.tokenMeter.getState();
  const written = [];
  const { response, metadata } = await chat.generateResponse(history(messages, offered.length ? EXAMPLES : []), {
    functions: offered.length ? Object.fromEntries(functions) : undefined,
    maxTokens: Math.min(max_completion_tokens ?? max_tokens ?? maxTokens, maxTokens),
    temperature: temperature ?? 0,
    seed,
    repeatPenalty: { penalty: 1.1 },
    onFunctionCallParamsChunk: ({ callIndex, functionName, paramsChunk }) => {
      written[callIndex] ??= { name: functionName, arguments: "" };
      written[callIndex].arguments += paramsChunk;
    },
    signal: AbortSignal.any([gone, AbortSignal.timeout(seconds * 1000)]),
    stopOnAbortSignal: true,
  });
  const { usedInputTokens, usedOutputTokens } = TokenMeter.diff(sequence.tokenMeter, before);
  const message = { role: "assistant", content: response || null };
  // A call that was cut stays cut, as with other providers: half of its arguments, and the reason `length`.
  if (written.length) {
    message.tool_calls = written.map((called, index) => ({ index, id: `call_${Date.now()}_${index}`, type: "function", function: called }));
  }
  const cut = ["maxTokens", "abort"].includes(metadata.stopReason);
  const usage = { prompt_tokens: usedInputTokens, completion_tokens: usedOutputTokens, total_tokens: usedInputTokens + usedOutputTokens };
  return { message, finish_reason: cut ? "length" : written.length ? "tool_calls" : "stop", usage };
}

let turn = Promise.resolve();
async function complete(asked, response) {
  const started = Date.now();
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const mine = turn.then(() => answer(asked, gone.signal));
  turn = mine.catch(() => {});
  const { message, finish_reason, usage } = await mine;
  console.error(JSON.stringify({ ms: Date.now() - started, messages: asked.messages.length, tools: asked.tools?.length ?? 0, finish_reason, message }));
  const head = { id: `chatcmpl-${started}`, created: Math.floor(started / 1000), model: asked.model };
  if (!asked.stream) {
    const body = { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage };
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (rest) => response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...rest })}\n\n`);
  send({ choices: [{ index: 0, delta: message, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason }] });
  if (asked.stream_options?.include_usage) send({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}

const server = createServer(async (request, response) => {
  const refuse = (status, error) => {
    console.error(JSON.stringify({ status, error: String(error?.stack ?? error) }));
    if (response.headersSent) return response.destroy();
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: String(error) } }));
  };
  try {
    let body = "";
    for await (const chunk of request) {
      if ((body += chunk).length > 4_000_000) return refuse(413, "the request is too large");
    }
    if (request.url !== "/v1/chat/completions") return refuse(404, "there is only /v1/chat/completions");
    await complete(JSON.parse(body), response);
  } catch (error) {
    refuse(error instanceof SyntaxError ? 400 : 500, error);
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
process.stdin.on("end", () => process.exit(0)).resume();
