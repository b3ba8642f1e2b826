"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from smolagents import MCPClient
from {{module}} import {{name}} as subject

urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
with MCPClient([{"url": url, "transport": "streamable-http"} for url in urls]) as tools:
    subject.tools.update({tool.name: tool for tool in tools})
    print(subject.run(sys.argv[1]))
