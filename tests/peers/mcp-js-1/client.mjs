// Uses a server as an agent would, and prints what it saw as one line of JSON:
// client.mjs URL | client.mjs stdio PROGRAM ARGUMENT…
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const [where, command, ...args] = process.argv.slice(2);
const seen = { changed: false };
const client = new Client({ name: 'js-1', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { x: 'secret' } }));
client.setNotificationHandler(ToolListChangedNotificationSchema, async () => { seen.changed = true; });
const transport = where === 'stdio'
  ? new StdioClientTransport({ command, args })
  : new StreamableHTTPClientTransport(new URL(where));
await client.connect(transport);
const descriptions = async () => (await client.listTools()).tools.map((tool) => tool.description);
const call = async (name) => (await client.callTool({ name, arguments: {} })).content[0].text;
seen.before = await descriptions();
seen.asked = await call('ask');
seen.called = await call('calc');
for (let tries = 0; tries < 50 && !seen.changed; tries += 1) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
seen.after = await descriptions();
seen.resource = (await client.readResource({ uri: 'a://b' })).contents[0].text;
seen.prompt = (await client.getPrompt({ name: 'p' })).messages.length;
console.log(JSON.stringify(seen));
await client.close();
process.exit(0);
