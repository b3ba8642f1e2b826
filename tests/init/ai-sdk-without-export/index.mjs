import { generateText } from "ai";

const { text } = await generateText({ model: "openai/gpt-5", prompt: "What is love?" });
console.log(text);
