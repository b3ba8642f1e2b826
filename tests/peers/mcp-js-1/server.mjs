// A server of the first JavaScript SDK, for the `mcp_client` driver: `server.mjs stdio` or `server.mjs http`.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function bank() {
  const server = new McpServer({ name: 'bank', version: '1' }, { instructions: 'Ask before you pay.' });
  const text = (text) => ({ content: [{ type: 'text', text }] });
  server.registerTool('transfer', { description: 'Transfers money.', inputSchema: { to: z.string() } }, async ({ to }) =>
    text(`transferred to ${to}`));
  server.registerTool('audit', { description: 'Asks the client for everything a client can give.' }, async () => {
    const { roots } = await server.server.listRoots();
    const sampled = await server.server.createMessage({
      messages: [{ role: 'user', content: { type: 'text', text: 'who are you' } }],
      maxTokens: 50,
    });
    const elicited = await server.server.elicitInput({
      message: 'Really?',
      requestedSchema: { type: 'object', properties: { confirmed: { type: 'boolean' } }, required: ['confirmed'] },
    });
    const confirmed = elicited.action === 'accept' && elicited.content.confirmed;
    return text(`audit: ${roots[0].uri} ${sampled.content.text} ${confirmed}`);
  });
  server.registerPrompt('greet', { description: 'Greets.', argsSchema: { name: z.string() } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
  }));
  server.registerResource('memo', 'memo://one', { description: 'A memo.' }, async (uri) => ({
    contents: [{ uri: uri.href, text: 'the memo' }],
  }));
  return server;
}

if (process.argv[2] === 'stdio') {
  await bank().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const listener = http.createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = id ? sessions.get(id) : undefined;
    if (id && !transport) {
      response.writeHead(404).end();
      return;
    }
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await bank().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  listener.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
}
