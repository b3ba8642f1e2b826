"""Runs an agent with {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS.
An agent of yours gets its tools when it is made: make it here with `workbench=servers` in place of this one."""
import asyncio, os, sys
from contextlib import AsyncExitStack
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams
from {{module}} import {{name}} as subject

async def main(prompt):
    urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
    async with AsyncExitStack() as stack:
        servers = [McpWorkbench(StreamableHttpServerParams(url=url)) for url in urls]
        servers = [await stack.enter_async_context(server) for server in servers]
        agent = AssistantAgent("assistant", model_client=subject, workbench=servers, max_tool_iterations=40)
        print((await agent.run(task=prompt)).messages[-1].content)

asyncio.run(main(sys.argv[1]))
