"""Talks to an agent over A2A 1.0 with the official client, for `proofhouse agent serve`.

`agent.py URL MESSAGE WRITE`: the second message is one that needs an approval. It prints what it saw as one line of
JSON.
"""

import asyncio
import json
import sys

from a2a.client import ClientConfig
from a2a.client.client_factory import create_client
from a2a.helpers.proto_helpers import get_artifact_text, new_text_message
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)


def request(text, **ids):
    message = new_text_message(text, role=Role.ROLE_USER)
    for name, value in ids.items():
        setattr(message, name, value)
    return SendMessageRequest(message=message)


async def send(client, *arguments, **ids):
    async for response in client.send_message(request(*arguments, **ids)):
        task = response.task
    return task


async def main(url, text, write):
    seen = {}
    client = await create_client(url, ClientConfig(streaming=False))
    seen["card"] = [client._card.name] + [skill.id for skill in client._card.skills]
    task = await send(client, text)
    state = TaskState.Name(task.status.state)
    seen["send"] = [state] + [get_artifact_text(artifact) for artifact in task.artifacts]
    got = await client.get_task(GetTaskRequest(id=task.id))
    seen["get"] = TaskState.Name(got.status.state)
    listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    seen["list"] = [listed.total_size, listed.tasks[0].id == task.id]
    waiting = await send(client, write)
    approved = await send(client, "approve", task_id=waiting.id, context_id=waiting.context_id)
    seen["approval"] = [TaskState.Name(one.status.state) for one in (waiting, approved)]
    seen["errors"] = []
    config = TaskPushNotificationConfig(task_id=task.id, id="hook", url="http://127.0.0.1:9/", token="t")
    for call in [
        client.cancel_task(CancelTaskRequest(id=task.id)),
        client.get_task(GetTaskRequest(id="nobody's")),
        client.create_task_push_notification_config(config),
    ]:
        try:
            await call
        except Exception as error:
            seen["errors"].append(type(error).__name__)
    await client.close()
    client = await create_client(url, ClientConfig(streaming=True))
    seen["stream"] = []
    async for response in client.send_message(request(text, context_id=task.context_id)):
        seen["stream"].append(response.WhichOneof("payload"))
    try:
        async for _ in client.subscribe(SubscribeToTaskRequest(id=task.id)):
            pass
    except Exception as error:
        seen["errors"].append(type(error).__name__)
    await client.close()
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
