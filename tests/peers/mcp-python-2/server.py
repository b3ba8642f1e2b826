"""A server of the second Python SDK, for the `mcp_client` driver: `server.py stdio` or `server.py http`."""

import asyncio
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("bank", instructions="Ask before you pay.")


class Confirmation(BaseModel):
    confirmed: bool


def ask_roots() -> ListRoots:
    return ListRoots()


def ask_model() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="who are you"))
    return Sample([message], max_tokens=50)


def ask_user() -> Elicit[Confirmation]:
    return Elicit("Really?", Confirmation)


@server.tool()
async def transfer(to: str) -> str:
    """Transfers money."""
    return f"transferred to {to}"


@server.tool()
async def audit(
    roots: Annotated[ListRootsResult, Resolve(ask_roots)],
    sampled: Annotated[CreateMessageResult, Resolve(ask_model)],
    elicited: Annotated[Confirmation, Resolve(ask_user)],
) -> str:
    """Asks the client for everything a client can give."""
    return f"audit: {roots.roots[0].uri} {sampled.content.text} {elicited.confirmed}"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Greet {name}."


@server.resource("memo://one")
def memo() -> str:
    """A memo."""
    return "the memo"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
