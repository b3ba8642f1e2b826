"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import asyncio, os, sys
from contextlib import AsyncExitStack
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from agents import Runner
from agents.mcp import MCPServerStreamableHttp
from {{module}} import {{name}} as subject

async def main(prompt):
    urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(MCPServerStreamableHttp({"url": url})) for url in urls]
        agent = subject.clone(mcp_servers=[*subject.mcp_servers, *servers])
        print((await Runner.run(agent, prompt)).final_output)

asyncio.run(main(sys.argv[1]))
