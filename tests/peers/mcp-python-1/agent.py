"""Asks an agent on the first Python SDK, for `proofhouse agent serve`.

`agent.py legacy http URL` or `agent.py legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(client):
    seen = {"version": (await client.initialize()).protocolVersion}
    seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    said = await client.call_tool("clerk", {"message": 'Greet the person with the name "Ada".'})
    seen["said"] = [said.isError, said.content[0].text]
    greeted = await client.call_tool("demo_greet", {"name": "Ada"})
    seen["text"] = greeted.content[0].text
    denied = await client.call_tool("demo_publish", {"name": "Ada"})
    seen["denied"] = [denied.isError, denied.content[0].text]
    print(json.dumps(seen), flush=True)


async def main(_mode, kind, target, *arguments):
    if kind == "http":
        connection = streamable_http_client(target)
    else:
        connection = stdio_client(StdioServerParameters(command=target, args=list(arguments)))
    async with connection as (reader, writer, *_):
        async with ClientSession(reader, writer) as client:
            await use(client)


asyncio.run(main(*sys.argv[1:]))
