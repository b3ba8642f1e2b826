// Uses tools on the second JavaScript SDK, for `proofhouse tool serve`: `tools.mjs auto|legacy http URL` or
// `tools.mjs auto|legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, kind, target, ...args] = process.argv.slice(2);
const seen = {};
const client = new Client({ name: 'user', version: '1' }, { versionNegotiation: { mode } });
const transport =
  kind === 'http' ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target, args });
await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion();
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const greeted = await client.callTool({ name: 'demo_greet', arguments: { name: 'Ada' } });
seen.text = greeted.content[0].text;
seen.structured = greeted.structuredContent;
const wrong = await client.callTool({ name: 'demo_greet', arguments: { name: 3, more: 1 } });
seen.wrong = [wrong.isError, wrong.content[0].text];
try {
  await client.callTool({ name: 'nothing', arguments: {} });
} catch (error) {
  seen.unknown = error.code;
}
await client.close();
console.log(JSON.stringify(seen));
