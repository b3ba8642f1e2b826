import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { weatherTool } from "../tools/weather-tool";

const { OPENAI_BASE_URL: baseURL = "", OPENAI_API_KEY: apiKey } = process.env;

export const weatherAgent = new Agent({
  id: "weather-agent",
  name: "Weather Agent",
  instructions: "You are a helpful weather assistant.",
  model: createOpenAICompatible({ name: "openai", baseURL, apiKey })("gpt-5"),
  tools: { weatherTool },
});
