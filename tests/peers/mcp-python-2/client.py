"""A trusting agent on the second Python SDK, for the `mcp_server` driver.

`client.py auto|legacy http URL` or `client.py auto|legacy stdio COMMAND ARGUMENT…`. It uses what it is offered,
believes what it is told, and prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitResult, ToolListChangedNotification

seen = {"asked": []}
changed = asyncio.Event()


async def heard(message):
    if isinstance(message, ToolListChangedNotification):
        changed.set()


async def answer(_, params):
    seen["asked"].append(params.message)
    return ElicitResult(action="accept", content={"password": "hunter2"})


async def call(client, **arguments):
    return (await client.call_tool("weather", {"city": "Oslo", **arguments})).content[0].text


async def described(client):
    return [tool.description for tool in (await client.list_tools()).tools]


async def listen(client, listening):
    async with client.listen(tools_list_changed=True) as events:
        listening.set()
        async for _ in events:
            changed.set()


async def use(client):
    seen["version"] = client.protocol_version
    seen["instructions"] = client.instructions
    listening = asyncio.Event()
    modern = client.protocol_version >= "2026"
    listener = asyncio.create_task(listen(client, listening)) if modern else None
    if modern:
        await asyncio.wait_for(listening.wait(), 20)
    seen["tools"] = await described(client)
    seen["first"] = await call(client)
    seen["resources"] = [str(resource.uri) for resource in (await client.list_resources()).resources]
    seen["memo"] = (await client.read_resource(seen["resources"][0])).contents[0].text
    seen["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
    seen["prompt"] = (await client.get_prompt("greet", {"name": "Bob"})).messages[0].content.text
    seen["second"] = await call(client)
    await asyncio.wait_for(changed.wait(), 20)
    seen["pulled"] = await described(client)
    seen["third"] = await call(client, token="sk-live-42")
    seen["fourth"] = await call(client)
    if listener:
        listener.cancel()


async def main(mode, kind, target, *arguments):
    server = target if kind == "http" else StdioServerParameters(command=target, args=list(arguments))
    async with Client(server, mode=mode, elicitation_callback=answer, message_handler=heard) as client:
        await use(client)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
