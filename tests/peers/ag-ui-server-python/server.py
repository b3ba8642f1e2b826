"""An agent that speaks AG-UI with the Python package, for the `ag_ui_client` driver.

The first run calls a frontend tool, in events or (on `/chunks`) in chunks; once its result is in the
messages, the agent says what it was.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ag_ui.core import (
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder


def events(run, chunks):
    ids = {"thread_id": run.thread_id, "run_id": run.run_id}
    yield RunStartedEvent(**ids)
    last = run.messages[-1]
    if last.role == "tool":
        yield TextMessageStartEvent(message_id="m1", role="assistant")
        yield TextMessageContentEvent(message_id="m1", delta=f"the tool said: {last.content}")
        yield TextMessageEndEvent(message_id="m1")
    elif chunks:
        yield ToolCallChunkEvent(tool_call_id="c1", tool_call_name=run.tools[0].name, delta='{"path":')
        yield ToolCallChunkEvent(delta=' "/etc"}')
    else:
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name=run.tools[0].name)
        yield ToolCallArgsEvent(tool_call_id="c1", delta='{"path": "/etc"}')
        yield ToolCallEndEvent(tool_call_id="c1")
    yield RunFinishedEvent(**ids)


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        encoder = EventEncoder(accept=self.headers.get("accept"))
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", encoder.get_content_type())
        self.end_headers()
        try:
            run = RunAgentInput.model_validate_json(body)
            for event in events(run, self.path == "/chunks"):
                self.wfile.write(encoder.encode(event).encode())
        except ValueError as error:
            self.wfile.write(encoder.encode(RunErrorEvent(message=str(error))).encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
