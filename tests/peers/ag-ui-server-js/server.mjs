// An agent that speaks AG-UI with the JavaScript packages, for the `ag_ui_client` driver. The first run calls a
// frontend tool, in events or (on `/chunks`) in chunks; once its result is there, the agent says what it was.
import http from 'node:http';
import { AbstractAgent, verifyEvents } from '@ag-ui/client';
import { EventType } from '@ag-ui/core';
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { EventEncoder } from '@ag-ui/encoder';
import { from } from 'rxjs';

class Caller extends AbstractAgent {
  constructor(chunks) {
    super();
    this.chunks = chunks;
  }

  run(input) {
    const events = from(this.events(input));
    // The package's own check of the order of events knows no chunks: they are expanded before it.
    return this.chunks ? events : events.pipe(verifyEvents(false));
  }

  *events(run) {
    const ids = { threadId: run.threadId, runId: run.runId };
    yield { type: EventType.RUN_STARTED, ...ids };
    const last = run.messages.at(-1);
    if (last.role === 'tool') {
      yield { type: EventType.TEXT_MESSAGE_START, messageId: 'm1', role: 'assistant' };
      yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: 'm1', delta: `the tool said: ${last.content}` };
      yield { type: EventType.TEXT_MESSAGE_END, messageId: 'm1' };
    } else if (this.chunks) {
      yield { type: EventType.TOOL_CALL_CHUNK, toolCallId: 'c1', toolCallName: run.tools[0].name, delta: '{"path":' };
      yield { type: EventType.TOOL_CALL_CHUNK, delta: ' "/etc"}' };
    } else {
      yield { type: EventType.TOOL_CALL_START, toolCallId: 'c1', toolCallName: run.tools[0].name };
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId: 'c1', delta: '{"path": "/etc"}' };
      yield { type: EventType.TOOL_CALL_END, toolCallId: 'c1' };
    }
    yield { type: EventType.RUN_FINISHED, ...ids };
  }
}

const server = http.createServer(async (request, response) => {
  const encoder = new EventEncoder({ accept: request.headers.accept });
  let body = '';
  for await (const piece of request) body += piece;
  response.writeHead(200, { 'content-type': encoder.getContentType() });
  const fail = (error) => {
    response.write(encoder.encodeSSE({ type: EventType.RUN_ERROR, message: String(error) }));
    response.end();
  };
  try {
    const input = RunAgentInputSchema.parse(JSON.parse(body));
    new Caller(request.url === '/chunks').run(input).subscribe({
      next: (event) => response.write(encoder.encodeSSE(event)),
      error: fail,
      complete: () => response.end(),
    });
  } catch (error) {
    fail(error);
  }
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
