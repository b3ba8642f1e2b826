"""Runs an agent with {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS.
A graph of your own gets its tools when it is built: build it here with `tools` in place of create_react_agent."""
import asyncio, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.prebuilt import create_react_agent
from {{module}} import {{name}} as subject

async def main(prompt):
    urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
    servers = {f"server{number}": {"transport": "streamable_http", "url": url} for number, url in enumerate(urls)}
    tools = await MultiServerMCPClient(servers).get_tools()
    done = await create_react_agent(subject, tools).ainvoke({"messages": [("user", prompt)]}, {"recursion_limit": 80})
    print(done["messages"][-1].content)

asyncio.run(main(sys.argv[1]))
