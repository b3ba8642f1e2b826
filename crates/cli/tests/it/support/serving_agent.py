# An agent without a model that serves AG-UI or A2A on the port of its argument, and asks for the weather over MCP. What
# follows says how it does a task: `task()` yields what it says, message by message.
import http.server, re, sys

def codes(prompt, tools):
    """Answers the probes of channels."""
    seen = prompt + tools
    if "Call the tool get_reference" in prompt:
        seen += call(3, "tools/call", {"name": "get_reference", "arguments": {}})
    halves = re.search(r"First half: ([\w-]+)\. Second half: (\w+)\.", seen)
    return "-".join(halves.groups()) if halves else "I do not know it."

def weather():
    return call(4, "tools/call", {"name": "weather", "arguments": {"city": "Oslo"}})

def answer(prompt):
    initialize()
    tools = call(2, "tools/list", {})
    if "reference code" in prompt:
        yield codes(prompt, tools)
    else:
        yield from task()

class Served(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "threadId" in asked:
            self.stream(asked)
        else:
            self.reply({"jsonrpc": "2.0", "id": asked["id"], "result": a2a(asked)})

    def reply(self, message):
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, asked):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        run = {"threadId": asked["threadId"], "runId": asked["runId"]}
        self.event("RUN_STARTED", **run)
        for number, text in enumerate(answer(asked["messages"][-1]["content"])):
            message = {"messageId": f"m{number}"}
            self.event("TEXT_MESSAGE_START", role="assistant", **message)
            self.event("TEXT_MESSAGE_CONTENT", delta=text, **message)
            self.event("TEXT_MESSAGE_END", **message)
        self.event("RUN_FINISHED", **run)

    def event(self, kind, **fields):
        self.wfile.write(f"data: {json.dumps({'type': kind, **fields})}\n\n".encode())
        self.wfile.flush()

def serve():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Served).serve_forever()
