"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from crewai import Crew, Task
from crewai_tools import MCPServerAdapter
from {{module}} import {{name}} as subject

urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
with MCPServerAdapter([{"url": url, "transport": "streamable-http"} for url in urls]) as tools:
    subject.tools = [*(subject.tools or []), *tools]
    task = Task(description=sys.argv[1], expected_output="The answer", agent=subject)
    print(Crew(agents=[subject], tasks=[task]).kickoff())
