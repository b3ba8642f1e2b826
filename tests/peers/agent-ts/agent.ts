// An agent in TypeScript on the AI SDK, as a subject of `proofhouse run --command`.
//
// `agent.ts PROMPT` does one task and prints the answer. Its MCP servers are those of PROOFHOUSE_MCP_URLS, its model is
// the one behind OPENAI_BASE_URL.
import { createMCPClient, type MCPClient } from "@ai-sdk/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, type ToolSet } from "ai";

const system = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it.";
const { OPENAI_BASE_URL: baseURL = "", OPENAI_API_KEY: apiKey, PROOFHOUSE_MCP_URLS: urls = "" } = process.env;
const prompt: string = process.argv[2] ?? "";

const clients: MCPClient[] = [];
let tools: ToolSet = {};
for (const url of urls.split(",")) {
  const client = await createMCPClient({ transport: { type: "http", url } });
  clients.push(client);
  tools = { ...tools, ...(await client.tools()) };
}
try {
  const model = createOpenAICompatible({ name: "mock", baseURL, apiKey })("mock");
  const { text } = await generateText({ model, system, prompt, tools, stopWhen: isStepCount(40) });
  console.log(text);
} finally {
  await Promise.all(clients.map((client) => client.close()));
}
