"""Asks an agent on the second Python SDK, for `proofhouse agent serve`.

`agent.py auto|legacy http URL` or `agent.py auto|legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line
of JSON.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def use(client):
    seen = {"version": client.protocol_version}
    seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    said = await client.call_tool("clerk", {"message": 'Greet the person with the name "Ada".'})
    seen["said"] = [said.is_error, said.content[0].text]
    greeted = await client.call_tool("demo_greet", {"name": "Ada"})
    seen["text"] = greeted.content[0].text
    denied = await client.call_tool("demo_publish", {"name": "Ada"})
    seen["denied"] = [denied.is_error, denied.content[0].text]
    print(json.dumps(seen), flush=True)


async def main(mode, kind, target, *arguments):
    server = target if kind == "http" else StdioServerParameters(command=target, args=list(arguments))
    async with Client(server, mode=mode) as client:
        await use(client)


asyncio.run(main(*sys.argv[1:]))
