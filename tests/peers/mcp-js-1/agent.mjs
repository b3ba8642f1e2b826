// Asks an agent on the first JavaScript SDK, for `proofhouse agent serve`: `agent.mjs legacy http URL` or
// `agent.mjs legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
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
const said = await client.callTool({ name: 'clerk', arguments: { message: 'Greet the person with the name "Ada".' } });
seen.said = [said.isError ?? false, said.content[0].text];
const greeted = await client.callTool({ name: 'demo_greet', arguments: { name: 'Ada' } });
seen.text = greeted.content[0].text;
const denied = await client.callTool({ name: 'demo_publish', arguments: { name: 'Ada' } });
seen.denied = [denied.isError, denied.content[0].text];
await client.close();
console.log(JSON.stringify(seen));
