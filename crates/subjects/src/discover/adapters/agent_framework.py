"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import asyncio, os, sys
from contextlib import AsyncExitStack
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from agent_framework import MCPStreamableHTTPTool
from {{module}} import {{name}} as subject

async def main(prompt):
    urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
    async with AsyncExitStack() as stack:
        servers = [MCPStreamableHTTPTool(name=f"server{number}", url=url) for number, url in enumerate(urls)]
        servers = [await stack.enter_async_context(server) for server in servers]
        print((await subject.run(prompt, tools=servers)).text)

asyncio.run(main(sys.argv[1]))
