"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import os, sys
from contextlib import ExitStack
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
import mcp.client.streamable_http as http
from strands.tools.mcp import MCPClient
from {{module}} import {{name}} as subject

# The function has another name in older versions.
connect = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
with ExitStack() as stack:
    for url in filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(",")):
        server = stack.enter_context(MCPClient(lambda url=url: connect(url)))
        subject.tool_registry.process_tools(list(server.list_tools_sync()))
    print(subject(sys.argv[1]))
