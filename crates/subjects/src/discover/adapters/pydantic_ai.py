"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
import pydantic_ai.mcp as mcp
from {{module}} import {{name}} as subject

urls = list(filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(",")))
# The class has another name in older versions.
server = getattr(mcp, "MCPToolset", None) or mcp.MCPServerStreamableHTTP
servers = [server(url, id=f"server{number}") for number, url in enumerate(urls)]
print(subject.run_sync(sys.argv[1], toolsets=servers).output)
