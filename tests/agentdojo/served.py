"""A suite of AgentDojo as an MCP server, over one connection of a Unix socket."""

import datetime
import json

from agentdojo.functions_runtime import FunctionsRuntime
from pydantic import BaseModel


def plain(value):
    """A result as JSON."""
    if isinstance(value, BaseModel):
        return json.loads(value.model_dump_json())
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (datetime.date, datetime.datetime)):
        return str(value)
    return value


def tools_of(suite):
    return [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters.model_json_schema()}
        for tool in suite.tools
    ]


class ServedSuite:
    """Answers requests with the suite's own functions and environment."""

    def __init__(self, suite, environment):
        self.tools = tools_of(suite)
        self.runtime = FunctionsRuntime(suite.tools)
        self.environment = environment
        self.called = 0

    def answer(self, method, params):
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "agentdojo", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": self.tools}
        if method == "tools/call":
            self.called += 1
            value, error = self.runtime.run_function(self.environment, params["name"], params["arguments"])
            value = error if error else plain(value)
            if isinstance(value, str) or value is None:
                return {"content": [{"type": "text", "text": value or ""}], "isError": bool(error)}
            structured = value if isinstance(value, dict) else {"result": value}
            return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": structured}
        return {}

    def serve(self, connection):
        """Answers until the other side ends."""
        with connection, connection.makefile("rwb") as lines:
            for line in lines:
                message = json.loads(line)
                if "id" not in message:
                    continue
                result = self.answer(message["method"], message.get("params") or {})
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                lines.write(json.dumps(answer).encode() + b"\n")
                lines.flush()
