import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const { OPENAI_BASE_URL: baseURL = "", OPENAI_API_KEY: apiKey } = process.env;
export const model = createOpenAICompatible({ name: "openai", baseURL, apiKey })("gpt-5");

if (import.meta.url === `file://${process.argv[1]}`) {
  const { text } = await generateText({ model, prompt: "What is love?" });
  console.log(text);
}
