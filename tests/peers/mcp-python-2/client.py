"""Uses a server as an agent would, and prints what it saw as one line of JSON:
client.py URL | client.py stdio PROGRAM ARGUMENT…"""

import asyncio
import json
import sys

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def elicit(_context, _params):
    return types.ElicitResult(action="accept", content={"x": "secret"})


async def main():
    target = sys.argv[1]
    if target == "stdio":
        target = stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:]))
    seen = {}
    async with Client(target, elicitation_callback=elicit) as client:
        seen["version"] = client.protocol_version
        seen["before"] = [tool.description for tool in (await client.list_tools()).tools]
        seen["asked"] = (await client.call_tool("ask", {})).content[0].text
        seen["called"] = (await client.call_tool("calc", {})).content[0].text
        seen["after"] = [tool.description for tool in (await client.list_tools()).tools]
        seen["resource"] = (await client.read_resource("a://b")).contents[0].text
        seen["prompt"] = len((await client.get_prompt("p")).messages)
    print(json.dumps(seen))


asyncio.run(main())
