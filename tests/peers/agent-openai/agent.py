"""An agent on the OpenAI Agents SDK, as a subject of `proofhouse run --command`.

`agent.py PROMPT` does one task and prints the answer. Its MCP servers are those of PROOFHOUSE_MCP_URLS, its model is
the one behind OPENAI_BASE_URL.
"""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerManager, MCPServerStreamableHttp
from openai import AsyncOpenAI

INSTRUCTIONS = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it."


async def main(prompt):
    # Traces would go to the provider.
    set_tracing_disabled(True)
    urls = os.environ["PROOFHOUSE_MCP_URLS"].split(",")
    servers = [MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=60) for url in urls]
    async with MCPServerManager(servers, strict=True, connect_timeout_seconds=60) as connected:
        agent = Agent(
            name="assistant",
            instructions=INSTRUCTIONS,
            model=OpenAIChatCompletionsModel(model="mock", openai_client=AsyncOpenAI()),
            mcp_servers=connected.active_servers,
        )
        done = Runner.run_streamed(agent, prompt, max_turns=40)
        async for _ in done.stream_events():
            pass
        print(done.final_output)


asyncio.run(main(sys.argv[1]))
