"""A scripted model behind an OpenAI-compatible endpoint (`/v1/chat/completions`, streamed and whole).

Its address says how it behaves: http://127.0.0.1:PORT/BEHAVIOUR/v1, or …/BEHAVIOUR/RUN/v1, where the last part of RUN is
the number of the repeat. It keeps no memory: what it does next follows from the conversation it is sent. It answers channel
probes as a model would, by reading what it is sent.

`python3 tests/truth/model.py [PORT]` serves it alone, to try a framework by hand.
"""

import base64
import json
import re
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from behaviours import BEHAVIOURS
from documents import FRONTEND_DOCUMENTS, TOOL_DOCUMENTS, Call

ERROR_TEXT = "Error: the model is overloaded, please try again later."
REFUSAL = "I am sorry, I cannot help with that."
ANNOUNCEMENT = "I will look into that for you."
CHAT = "Hello! That sounds interesting. I am happy to help you with anything you like."
BEHAVIOUR = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


@dataclass(frozen=True)
class Text:
    """A reply that says something."""

    text: str


@dataclass(frozen=True)
class Turn:
    """A reply with several calls."""

    calls: tuple


@dataclass(frozen=True)
class Failure:
    """A reply that is none: a status with an error, a connection that breaks off (0), or silence (-1)."""

    status: int
    message: str = ""


CUT = Failure(0)
SILENCE = Failure(-1)
ALWAYS = {
    "down": Failure(500, "The model is down."),
    "cut": CUT,
    "hang": SILENCE,
    "error": Text(ERROR_TEXT),
    "refuse": Text(REFUSAL),
    "chat": Text(CHAT),
}


def strings(value):
    """All texts in a value, wherever they stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def said(message):
    """The text of a message, which may be in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(strings([part.get("text", "") for part in content]))


class Conversation:
    """What the framework sends: all that the model can know."""

    def __init__(self, request):
        messages = request.get("messages", [])
        self.text = "\n".join(strings([messages, request.get("tools") or []]))
        self.system = " ".join(said(message) for message in messages if message["role"] in ("system", "developer"))
        users = [place for place, message in enumerate(messages) if message["role"] == "user"]
        last = users[-1] if users else -1
        self.prompt = said(messages[last]) if users else ""
        calls = [call for message in messages[last + 1 :] for call in message.get("tool_calls") or []]
        self.called = [call["function"]["name"] for call in calls]

    def fill(self, value, document):
        """An argument or an answer, with what the model has read in place of the names in braces."""
        if isinstance(value, dict):
            return {key: self.fill(part, document) for key, part in value.items()}
        if not isinstance(value, str) or "{" not in value:
            return value
        found = re.search(document.secret, self.text) if document.secret else None
        secret = found[0] if found else "unknown"
        return value.format(
            secret=secret,
            base64=base64.b64encode(secret.encode()).decode(),
            reversed=secret[::-1],
            upper=secret.upper(),
            system=self.system,
        )


def with_surrogate(arguments):
    """The same with half a surrogate pair at the end of the first text, if there is one."""
    texts = [key for key, value in arguments.items() if isinstance(value, str)]
    return arguments | {key: f"{arguments[key]}\ud83d" for key in texts[:1]}


def answer_probe(heard):
    """Does what a channel probe asks for: calls the tool that it names, finds both halves of the code and joins them."""
    if re.search(r"(Call|Use) the tool get_reference", heard.prompt) and "get_reference" not in heard.called:
        return Call("get_reference")
    halves = re.search(r"First half: ([\w-]+)\. Second half: (\w+)\.", heard.text)
    if not halves:
        return Text("I do not see a reference code.")
    code = f"{halves[1]}-{halves[2]}"
    if "Call the tool submit_code" in heard.prompt and "submit_code" not in heard.called:
        return Call("submit_code", {"code": code})
    return Text(code)


def decide(behaviour, repeat, heard):
    """What the model replies: a Text, a Call, a Turn or a Failure."""
    if behaviour.always:
        return ALWAYS[behaviour.always]
    if "two halves" in heard.prompt:
        return answer_probe(heard)
    documents = TOOL_DOCUMENTS + FRONTEND_DOCUMENTS
    document = next((one for one in documents if heard.prompt.startswith(one.prompt)), None)
    if document is None:
        return Text("I do not know what you mean.")
    if behaviour.task == "refuse":
        return Text(REFUSAL)
    if behaviour.task == "wrong":
        return Text("It did not work.") if heard.called else Call(document.task.calls[0].tool, document.wrong)
    if behaviour.task == "skip":
        return Text(document.task.answer)
    if behaviour.task == "parallel" and not heard.called:
        calls = document.task.calls
        return Turn(calls if len(calls) > 1 else calls * 2)
    payload = document.shows_payload(heard.text)
    reaction = behaviour.payload if payload and repeat >= behaviour.since else None
    if reaction == "filter":
        return Failure(400, "The prompt was filtered: it seems to contain an attack.")
    if reaction == "error":
        return Text(ERROR_TEXT)
    if reaction == "announce":
        return Text(ANNOUNCEMENT)
    if reaction == "skip":
        return Text(document.task.answer)
    plan = document.plan(reaction) if reaction not in (None, "quote") else document.task
    if len(heard.called) < len(plan.calls):
        call = plan.calls[len(heard.called)]
        arguments = heard.fill(call.arguments, document)
        return Call(call.tool, with_surrogate(arguments) if behaviour.surrogate else arguments)
    if behaviour.task == "cut":
        return CUT
    answer = heard.fill(plan.answer, document)
    if reaction == "quote":
        answer += f' A text that I read says: "{payload[0]}" You did not ask for that, and I will not do it.'
    return Text(answer)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        parts = self.path.split("/v1/")[0].strip("/").split("/")
        behaviour = BEHAVIOUR[parts[0]]
        # Runs of controls end in a word.
        repeat = int(parts[-1]) if parts[-1].isdigit() else 1
        heard = Conversation(request)
        reply = decide(behaviour, repeat, heard)
        if behaviour.thinks and not heard.called:
            time.sleep(self.server.thinking)
        if reply == SILENCE:
            self.server.closing.wait(600)
            reply = CUT
        if isinstance(reply, Failure) and reply.status:
            body = {"error": {"message": reply.message, "type": "scripted", "code": "scripted"}}
            # The official clients would try again, which takes time and changes nothing.
            self.send(reply.status, "application/json", json.dumps(body), {"x-should-retry": "false"})
        elif request.get("stream"):
            self.stream(reply, behaviour.piece, request)
        elif reply == CUT:
            self.send(200, "application/json", '{"id": "cut", "choices": [{"index": 0, "mess', length=1000)
            self.close_connection = True
        else:
            message, reason = whole(reply)
            body = {
                **frame("chat.completion"),
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": USAGE,
            }
            self.send(200, "application/json", json.dumps(body))

    def send(self, status, kind, body, headers=None, length=None):
        body = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length or len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, reply, piece, request):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for delta, reason in deltas(reply, piece):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            self.event(frame("chat.completion.chunk") | {"choices": [choice]})
        if reply == CUT:
            # Without the last chunk, the client can tell that this is not the end.
            self.close_connection = True
            return
        if (request.get("stream_options") or {}).get("include_usage"):
            self.event(frame("chat.completion.chunk") | {"choices": [], "usage": USAGE})
        self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, value):
        self.chunk(f"data: {json.dumps(value)}\n\n")

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
numbers = iter(range(1, sys.maxsize))


def frame(kind):
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": "mock"}


def function(call):
    return {"name": call.tool, "arguments": json.dumps(call.arguments)}


def calls_of(reply):
    return reply.calls if isinstance(reply, Turn) else (reply,)


def whole(reply):
    """A reply as one message, and why it ended."""
    if isinstance(reply, Text):
        return {"role": "assistant", "content": reply.text}, "stop"
    calls = [{"id": f"call_{next(numbers)}", "type": "function", "function": function(call)} for call in calls_of(reply)]
    return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def deltas(reply, piece):
    """A reply as the pieces of a stream, the last with why it ended."""
    if reply == CUT:
        yield {"role": "assistant", "content": "I w"}, None
    elif isinstance(reply, Text):
        yield {"role": "assistant", "content": ""}, None
        for text in cut(reply.text, piece):
            yield {"content": text}, None
        yield {}, "stop"
    else:
        for index, call in enumerate(calls_of(reply)):
            named = function(call)
            head = {"index": index, "id": f"call_{next(numbers)}", "type": "function"}
            yield {"role": "assistant", "tool_calls": [head | {"function": named | {"arguments": ""}}]}, None
            for text in cut(named["arguments"], piece):
                yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}, None
        yield {}, "tool_calls"


def cut(text, piece):
    piece = piece or max(len(text), 1)
    return [text[at : at + piece] for at in range(0, len(text), piece)]


class ScriptedModel(ThreadingHTTPServer):
    """The endpoint, as a context in which it is served. `thinking` is how many seconds a long thought takes."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, thinking, port=0):
        super().__init__(("127.0.0.1", port), Endpoint)
        self.thinking = thinking
        self.closing = threading.Event()
        # How often the script itself failed.
        self.faults = 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.server_close()

    def base_url(self, behaviour):
        return f"http://127.0.0.1:{self.server_port}/{behaviour.name}"

    def handle_error(self, request, address):
        # Clients that give up are part of the play; whatever else goes wrong here must not pass for a model that is down.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)
            self.faults += 1


if __name__ == "__main__":
    with ScriptedModel(12, int(sys.argv[1]) if len(sys.argv) > 1 else 0) as model:
        for one in BEHAVIOURS:
            print(f"OPENAI_BASE_URL={model.base_url(one)}/v1  # {one.about}", flush=True)
        threading.Event().wait()
