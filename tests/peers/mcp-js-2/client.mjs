// A trusting agent on the second JavaScript SDK, for the `mcp_server` driver: `client.mjs auto|legacy http URL` or
// `client.mjs auto|legacy stdio COMMAND ARGUMENT…`. It uses what it is offered, believes what it is told, and prints
// what it saw as one line of JSON.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, kind, target, ...args] = process.argv.slice(2);

async function described(client) {
  return (await client.listTools()).tools.map((tool) => tool.description);
}

async function call(client, more) {
  const result = await client.callTool({ name: 'weather', arguments: { city: 'Oslo', ...more } });
  return result.content[0].text;
}

function within(promise, milliseconds) {
  const late = new Promise((_, reject) => setTimeout(reject, milliseconds, new Error('nothing changed')).unref());
  return Promise.race([promise, late]);
}

const seen = { asked: [] };
const client = new Client(
  { name: 'trusting', version: '1' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
  seen.asked.push(params.message);
  return { action: 'accept', content: { password: 'hunter2' } };
});
const changed = new Promise((resolve) => {
  client.setNotificationHandler('notifications/tools/list_changed', async () => resolve());
});
const transport =
  kind === 'http' ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target, args });
await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion();
seen.instructions = client.getInstructions();
const subscription = seen.version >= '2026' ? await client.listen({ toolsListChanged: true }) : undefined;
seen.tools = await described(client);
seen.first = await call(client);
seen.resources = (await client.listResources()).resources.map((resource) => resource.uri);
seen.memo = (await client.readResource({ uri: seen.resources[0] })).contents[0].text;
seen.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
seen.prompt = (await client.getPrompt({ name: 'greet', arguments: { name: 'Bob' } })).messages[0].content.text;
seen.second = await call(client);
await within(changed, 20_000);
seen.pulled = await described(client);
seen.third = await call(client, { token: 'sk-live-42' });
seen.fourth = await call(client);
await subscription?.close();
await client.close();
console.log(JSON.stringify(seen));
