"""The agent of the tutorial (docs/tutorial/first-gate.md): plain Python 3.9 or newer, nothing to install.

`agent.py PROMPT` does one task and prints the answer. Its tools are those of the MCP servers in PROOFHOUSE_MCP_URLS. Its
model is behind OPENAI_BASE_URL: OpenAI, anything that speaks the same API, or `proofhouse model serve`.
"""

import json
import os
import sys
import urllib.request

INSTRUCTIONS = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it."


def post(url, body, headers):
    """Sends JSON and returns the JSON that comes back, also out of an event stream, and the headers."""
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, json.dumps(body).encode(), {**accept, **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
        for line in text.splitlines():
            if line.startswith("data:") and '"id"' in line:
                text = line[len("data:"):]
        return (json.loads(text) if text.strip() else None), answer.headers


class Server:
    """One MCP server, over Streamable HTTP."""

    def __init__(self, url):
        self.url, self.headers, self.sent = url, {}, 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "first-agent", "version": "1"}}
        _, headers = self.request("initialize", hello)
        if headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = "2025-06-18"
        post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def request(self, method, parameters):
        self.sent += 1
        message = {"jsonrpc": "2.0", "id": self.sent, "method": method, "params": parameters}
        answer, headers = post(self.url, message, self.headers)
        return answer, headers

    def tools(self):
        return self.request("tools/list", {})[0]["result"]["tools"]

    def call(self, name, arguments):
        answer = self.request("tools/call", {"name": name, "arguments": arguments})[0]
        result = answer.get("result") or {"content": [{"text": answer["error"]["message"]}]}
        return "\n".join(part.get("text", "") for part in result["content"])


def main(prompt):
    servers = [Server(url) for url in os.environ["PROOFHOUSE_MCP_URLS"].split(",")]
    owners, functions = {}, []
    for server in servers:
        for tool in server.tools():
            owners[tool["name"]] = server
            function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["inputSchema"]}
            functions.append({"type": "function", "function": function})
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
    key = {"Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")}
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": prompt}]
    for _ in range(40):
        request = {"model": os.environ.get("MODEL", "gpt-5"), "messages": messages, "tools": functions}
        message = post(url, request, key)[0]["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            content = owners[name].call(name, arguments) if name in owners else "there is no such tool"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    sys.exit("no answer after 40 turns")


main(sys.argv[1])
