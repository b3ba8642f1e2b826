"""A server of the first Python SDK, for the `mcp_client` driver: `server.py stdio` or `server.py http`."""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP("bank", instructions="Ask before you pay.")


class Confirmation(BaseModel):
    confirmed: bool


@server.tool()
async def transfer(to: str) -> str:
    """Transfers money."""
    return f"transferred to {to}"


@server.tool()
async def audit(ctx: Context) -> str:
    """Asks the client for everything a client can give."""
    roots = await ctx.session.list_roots()
    sampled = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text="who are you"))],
        max_tokens=50,
    )
    elicited = await ctx.elicit("Really?", Confirmation)
    confirmed = elicited.action == "accept" and elicited.data.confirmed
    return f"audit: {roots.roots[0].uri} {sampled.content.text} {confirmed}"


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
