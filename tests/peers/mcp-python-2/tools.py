"""Uses tools on the second Python SDK, for `proofhouse tool serve`.

`tools.py auto|legacy http URL` or `tools.py auto|legacy stdio COMMAND ARGUMENT…`. It prints what it saw as one line
of JSON.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters


async def use(client):
    seen = {"version": client.protocol_version}
    seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    greeted = await client.call_tool("demo_greet", {"name": "Ada"})
    seen["text"] = greeted.content[0].text
    seen["structured"] = greeted.structured_content
    wrong = await client.call_tool("demo_greet", {"name": 3, "more": 1})
    seen["wrong"] = [wrong.is_error, wrong.content[0].text]
    try:
        await client.call_tool("nothing", {})
    except MCPError as error:
        seen["unknown"] = error.error.code
    print(json.dumps(seen), flush=True)


async def main(mode, kind, target, *arguments):
    server = target if kind == "http" else StdioServerParameters(command=target, args=list(arguments))
    async with Client(server, mode=mode) as client:
        await use(client)


asyncio.run(main(*sys.argv[1:]))
