"""A client of A2A 1.0: reads the card at URL, sends TEXT twice (whole and streamed), gets the task.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from a2a.client import ClientConfig
from a2a.client.client_factory import create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types.a2a_pb2 import GetTaskRequest, Role, SendMessageRequest, TaskState


def request(text):
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))


def texts(task):
    found = [get_artifact_text(artifact) for artifact in task.artifacts]
    return found + [get_message_text(task.status.message)]


async def main(url, text):
    seen = {}
    client = await create_client(url, ClientConfig(streaming=False))
    seen["card"] = client._card.name
    seen["skill"] = client._card.skills[0].description
    async for response in client.send_message(request(text)):
        seen["send"] = texts(response.task)
        task_id = response.task.id
    task = await client.get_task(GetTaskRequest(id=task_id))
    seen["get"] = TaskState.Name(task.status.state)
    await client.close()
    client = await create_client(url, ClientConfig(streaming=True))
    seen["stream"] = []
    async for response in client.send_message(request(text)):
        seen["stream"].append(response.WhichOneof("payload"))
    await client.close()
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
