// Asks an agent on the second JavaScript SDK, for `proofhouse agent serve`: `agent.mjs auto|legacy http URL` or
// `agent.mjs auto|legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
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
const said = await client.callTool({ name: 'clerk', arguments: { message: 'Greet the person with the name "Ada".' } });
seen.said = [said.isError ?? false, said.content[0].text];
const greeted = await client.callTool({ name: 'demo_greet', arguments: { name: 'Ada' } });
seen.text = greeted.content[0].text;
const denied = await client.callTool({ name: 'demo_publish', arguments: { name: 'Ada' } });
seen.denied = [denied.isError, denied.content[0].text];
await client.close();
console.log(JSON.stringify(seen));
