// Uses a server as an agent would, and prints what it saw as one line of JSON:
// client.mjs MODE URL | client.mjs MODE stdio PROGRAM ARGUMENT…
// MODE is how the version is negotiated, `legacy` or `auto`.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, where, command, ...args] = process.argv.slice(2);
const seen = { changed: false };
const client = new Client({ name: 'js-2', version: '1' }, {
  capabilities: { elicitation: {} },
  versionNegotiation: { mode },
  listChanged: { tools: { onChanged: () => { seen.changed = true; } } },
});
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { x: 'secret' } }));
const transport = where === 'stdio'
  ? new StdioClientTransport({ command, args })
  : new StreamableHTTPClientTransport(new URL(where));
await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion();
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
