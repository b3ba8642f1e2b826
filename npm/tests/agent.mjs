// An agent on the AI SDK, as a function in the process of its tests.
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount } from "ai";

const system = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it.";

export async function myAgent(prompt, mcpUrls) {
  const clients = [];
  let tools = {};
  for (const url of mcpUrls) {
    const client = await createMCPClient({ transport: { type: "http", url } });
    clients.push(client);
    tools = { ...tools, ...(await client.tools()) };
  }
  try {
    const model = createOpenAICompatible({ name: "mock", baseURL: process.env.OPENAI_BASE_URL, apiKey: "none" })("mock");
    const { text } = await generateText({ model, system, prompt, tools, stopWhen: isStepCount(40) });
    return text;
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}
