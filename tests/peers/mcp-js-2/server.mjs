// A server of the second JavaScript SDK, for the `mcp_client` driver: `server.mjs stdio` or `server.mjs http`.
import http from 'node:http';
import { Readable } from 'node:stream';
import { McpServer, createMcpHandler, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function bank() {
  const server = new McpServer({ name: 'bank', version: '1' }, { instructions: 'Ask before you pay.' });
  const text = (text) => ({ content: [{ type: 'text', text }] });
  server.registerTool(
    'transfer',
    { description: 'Transfers money.', inputSchema: z.object({ to: z.string() }) },
    async ({ to }) => text(`transferred to ${to}`),
  );
  server.registerTool(
    'audit',
    { description: 'Asks the client for everything a client can give.', inputSchema: z.object({}) },
    async (_, ctx) => {
      const given = ctx.mcpReq.inputResponses;
      const [roots, model, user] = ['roots', 'model', 'user'].map((key) => inputResponse(given, key));
      if (roots.kind === 'missing') {
        return inputRequired({
          inputRequests: {
            roots: inputRequired.listRoots(),
            model: inputRequired.createMessage({
              messages: [{ role: 'user', content: { type: 'text', text: 'who are you' } }],
              maxTokens: 50,
            }),
            user: inputRequired.elicit({
              message: 'Really?',
              requestedSchema: { type: 'object', properties: { confirmed: { type: 'boolean' } }, required: ['confirmed'] },
            }),
          },
        });
      }
      return text(`audit: ${roots.roots[0].uri} ${model.result.content.text} ${user.content?.confirmed}`);
    },
  );
  server.registerPrompt('greet', { description: 'Greets.', argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
  }));
  server.registerResource('memo', 'memo://one', { description: 'A memo.' }, async (uri) => ({
    contents: [{ uri: uri.href, text: 'the memo' }],
  }));
  return server;
}

if (process.argv[2] === 'stdio') {
  serveStdio(bank);
} else {
  const handler = createMcpHandler(bank);
  const listener = http.createServer(async (incoming, outgoing) => {
    const hasBody = !['GET', 'HEAD', 'DELETE'].includes(incoming.method);
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method,
      headers: incoming.headers,
      ...(hasBody && { body: Readable.toWeb(incoming), duplex: 'half' }),
    });
    const response = await handler.fetch(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
    else outgoing.end();
  });
  listener.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
}
