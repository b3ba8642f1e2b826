"""An agent on Pydantic AI, as a subject of `proofhouse run --command`.

`agent.py PROMPT` does one task and prints the answer. `agent.py --serve PORT` is the same agent behind AG-UI, with the
framework's own adapter: it shows the state of the frontend to the model, as its documentation does, and the adapter drops
the frontend's `context`. Its MCP servers are those of PROOFHOUSE_MCP_URLS, its model is the one behind OPENAI_BASE_URL.
"""

import asyncio
import os
import sys

from pydantic import BaseModel, ConfigDict
from pydantic_ai import Agent, RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.ui import StateDeps

INSTRUCTIONS = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it."


class State(BaseModel):
    """Whatever the frontend shares."""

    model_config = ConfigDict(extra="allow")


urls = filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(","))
agent = Agent(
    OpenAIChatModel("mock"),
    instructions=INSTRUCTIONS,
    deps_type=StateDeps[State],
    toolsets=[MCPToolset(url, id=f"server{number}") for number, url in enumerate(urls)],
)


@agent.instructions
def shared_state(context: RunContext[StateDeps[State]]) -> str:
    state = context.deps.state.model_dump_json()
    return "" if state == "{}" else f"The state of the application is {state}"


async def main(prompt):
    async with agent:
        done = await agent.run(prompt, deps=StateDeps(State()))
    print(done.output)


def serve(port):
    import uvicorn
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def run(request):
        return await AGUIAdapter.dispatch_request(request, agent=agent, deps=StateDeps(State()))

    app = Starlette(routes=[Route("/", run, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if sys.argv[1] == "--serve":
    serve(int(sys.argv[2]))
else:
    asyncio.run(main(sys.argv[1]))
