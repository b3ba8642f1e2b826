// An OpenAI-compatible server by others. It echoes, calls a tool when asked about the weather, answers once the tool
// did, and fails on request. Prints the URL it listens on as one line.
import { createRequire } from "node:module";

// The package logs to the standard output, which belongs to the test.
console.log = console.error;
const require = createRequire(import.meta.url);
const { createServer } = require("@dwmkerr/mock-llm/dist/server.js");
const { getDefaultConfig } = require("@dwmkerr/mock-llm/dist/config.js");

const completion = (message, finish_reason) =>
  JSON.stringify({
    id: "chatcmpl-1", object: "chat.completion", created: 1, model: "{{jmes request body.model}}",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
    usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
  });
const rule = (match, status, content) => ({ path: "/v1/chat/completions", match, response: { status, content } });
const config = getDefaultConfig();
config.rules.push(
  rule("contains(body.messages[-1].content, 'weather')", 200, completion({
    content: null,
    tool_calls: [{ id: "call_7", type: "function", function: { name: "get_weather", arguments: '{"city": "Rome"}' } }],
  }, "tool_calls")),
  rule("body.messages[-1].role == 'tool'", 200, completion({ content: "The tool said: {{jmes request body.messages[-1].content}}" }, "stop")),
  rule("contains(body.messages[-1].content, 'error-401')", 401, JSON.stringify({
    error: { message: "Incorrect API key provided.", type: "invalid_request_error", param: null, code: "invalid_api_key" },
  })),
);
const server = createServer(config, "127.0.0.1", 0).listen(0, "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
