// Runs a task with {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS.
// An agent of yours gets its tools when it is made: make it here with `tools` in place of generateText.
import { createMCPClient } from "@ai-sdk/mcp";
import { generateText, isStepCount } from "ai";
import { {{name}} as subject } from "./{{path}}";

const clients = [];
for (const url of (process.env.PROOFHOUSE_MCP_URLS ?? "").split(",").filter(Boolean)) {
  clients.push(await createMCPClient({ transport: { type: "http", url } }));
}
const tools = Object.assign({}, ...(await Promise.all(clients.map((client) => client.tools()))));
const done = await generateText({ model: subject, tools, prompt: process.argv[2], stopWhen: isStepCount(40) });
console.log(done.text);
await Promise.all(clients.map((client) => client.close()));
