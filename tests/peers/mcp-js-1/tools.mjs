// Uses tools on the first JavaScript SDK, for `proofhouse tool serve`: `tools.mjs legacy http URL` or
// `tools.mjs legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, kind, target, ...args] = process.argv.slice(2);
const seen = {};
const client = new Client({ name: 'user', version: '1' });
const transport =
  kind === 'http' ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target, args });
// The version that was agreed on is told to the transport only.
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  seen.version = version;
  tell?.(version);
};
await client.connect(transport);
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
