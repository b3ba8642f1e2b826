"""A trusting agent on the first Python SDK, for the `mcp_server` driver.

`client.py legacy http URL` or `client.py legacy stdio COMMAND ARGUMENT…`. It uses what it is offered, believes what
it is told, and prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult, ServerNotification, ToolListChangedNotification

seen = {"asked": []}
changed = asyncio.Event()


async def heard(message):
    if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
        changed.set()


async def answer(_, params):
    seen["asked"].append(params.message)
    return ElicitResult(action="accept", content={"password": "hunter2"})


async def call(client, **arguments):
    return (await client.call_tool("weather", {"city": "Oslo", **arguments})).content[0].text


async def described(client):
    return [tool.description for tool in (await client.list_tools()).tools]


async def use(client):
    hello = await client.initialize()
    seen["version"] = hello.protocolVersion
    seen["instructions"] = hello.instructions
    seen["tools"] = await described(client)
    seen["first"] = await call(client)
    resources = (await client.list_resources()).resources
    seen["resources"] = [str(resource.uri) for resource in resources]
    seen["memo"] = (await client.read_resource(resources[0].uri)).contents[0].text
    seen["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
    seen["prompt"] = (await client.get_prompt("greet", {"name": "Bob"})).messages[0].content.text
    seen["second"] = await call(client)
    await asyncio.wait_for(changed.wait(), 20)
    seen["pulled"] = await described(client)
    seen["third"] = await call(client, token="sk-live-42")
    seen["fourth"] = await call(client)


async def main(_mode, kind, target, *arguments):
    if kind == "http":
        connection = streamable_http_client(target)
    else:
        connection = stdio_client(StdioServerParameters(command=target, args=list(arguments)))
    async with connection as (reader, writer, *_):
        async with ClientSession(reader, writer, elicitation_callback=answer, message_handler=heard) as client:
            await use(client)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
