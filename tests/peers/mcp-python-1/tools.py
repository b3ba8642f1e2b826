"""Uses tools on the first Python SDK, for `proofhouse tool serve`.

`tools.py legacy http URL` or `tools.py legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(client):
    seen = {"version": (await client.initialize()).protocolVersion}
    seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    greeted = await client.call_tool("demo_greet", {"name": "Ada"})
    seen["text"] = greeted.content[0].text
    seen["structured"] = greeted.structuredContent
    wrong = await client.call_tool("demo_greet", {"name": 3, "more": 1})
    seen["wrong"] = [wrong.isError, wrong.content[0].text]
    try:
        await client.call_tool("nothing", {})
    except McpError as error:
        seen["unknown"] = error.error.code
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
