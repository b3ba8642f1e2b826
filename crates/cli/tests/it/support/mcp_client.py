# A client of MCP over HTTP, in plain Python: what agents of tests begin with.
import json, os, urllib.request

url = os.environ["PROOFHOUSE_MCP_URL"]
headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

def call(number, method, params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number:
        message["id"] = number
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        session = answer.headers.get("mcp-session-id")
        if session:
            headers["mcp-session-id"] = session
        return answer.read().decode()

def initialize():
    client = {"name": "scripted", "version": "1"}
    call(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    headers["mcp-protocol-version"] = "2025-06-18"
    call(None, "notifications/initialized", {})
