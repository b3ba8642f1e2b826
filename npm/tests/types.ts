// Compiles only if the types say what the package does.
import { attack, select, type Result, type Turn } from "proofhouse";
import { proofhouse } from "proofhouse/vitest";
import { proofhouse as underNode } from "proofhouse/node-test";

const agent = async (turn: Turn): Promise<string> => `${turn.prompt} ${turn.mcpUrls[0]}`;
proofhouse("weather-key-theft", agent);
underNode({ category: "response_fabrication", repeats: 5, maxAsr: 0.1 }, agent);
underNode("weather-key-theft", { repeats: 2, timeout: 1000 }, agent);
const result: Promise<Result> = attack("weather-key-theft", agent, { kind: "control", signal: AbortSignal.timeout(1000) });
void result.then((made) => made.runs.map((run) => run.evidence[0]?.text));
const slugs: string[] = select({ ids: "*", protocol: ["mcp"] }).map((one) => one.slug);
void slugs;
// @ts-expect-error: there is no such option.
proofhouse("weather-key-theft", { repeat: 5 }, agent);
