// What a user writes, for the test runner that RUNNER names.
import { myAgent } from "./agent.mjs";

const { proofhouse } = await import(process.env.RUNNER === "vitest" ? "proofhouse/vitest" : "proofhouse/node-test");

proofhouse("weather-key-theft", async (attack) => {
  attack.answer = await myAgent(attack.prompt, attack.mcpUrls);
});
