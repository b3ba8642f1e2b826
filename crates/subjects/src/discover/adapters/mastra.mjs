// Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS.
import { MCPClient } from "@mastra/mcp";
import { {{name}} as subject } from "./{{path}}";

const urls = (process.env.PROOFHOUSE_MCP_URLS ?? "").split(",").filter(Boolean);
const servers = Object.fromEntries(urls.map((url, number) => [`server${number}`, { url: new URL(url) }]));
const mcp = new MCPClient({ servers });
const toolsets = await (mcp.listToolsets ?? mcp.getToolsets).call(mcp);
const done = await subject.generate(process.argv[2], { toolsets, maxSteps: 40 });
console.log(done.text);
await mcp.disconnect();
process.exit(0);
