"""Uses a server as an agent would, and prints what it saw as one line of JSON:
client.py URL | client.py stdio PROGRAM ARGUMENT…"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

seen = {"changed": False}


async def elicit(_context, _params):
    return types.ElicitResult(action="accept", content={"x": "secret"})


async def heard(message):
    if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
        seen["changed"] = True


async def use(read, write):
    async with ClientSession(read, write, elicitation_callback=elicit, message_handler=heard) as session:
        seen["version"] = (await session.initialize()).protocolVersion
        seen["before"] = [tool.description for tool in (await session.list_tools()).tools]
        seen["asked"] = (await session.call_tool("ask", {})).content[0].text
        seen["called"] = (await session.call_tool("calc", {})).content[0].text
        for _ in range(50):
            if seen["changed"]:
                break
            await asyncio.sleep(0.05)
        seen["after"] = [tool.description for tool in (await session.list_tools()).tools]
        seen["resource"] = (await session.read_resource("a://b")).contents[0].text
        seen["prompt"] = len((await session.get_prompt("p")).messages)
    print(json.dumps(seen))


async def main():
    if sys.argv[1] == "stdio":
        server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
        async with stdio_client(server) as (read, write):
            await use(read, write)
    else:
        async with streamablehttp_client(sys.argv[1]) as (read, write, _):
            await use(read, write)


asyncio.run(main())
