"""A client of A2A 1.0: reads the card at URL, sends TEXT twice (whole and streamed), and asks for
all there is to ask about the task.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

from a2a.client import ClientConfig
from a2a.client.client_factory import create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)


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
    listed = await client.list_tasks(ListTasksRequest(page_size=1))
    seen["list"] = [listed.total_size, listed.tasks[0].id]
    config = TaskPushNotificationConfig(task_id=task_id, id="hook", url="http://127.0.0.1:9/", token="t")
    seen["set"] = (await client.create_task_push_notification_config(config)).url
    asked = GetTaskPushNotificationConfigRequest(task_id=task_id, id="hook")
    seen["hook"] = (await client.get_task_push_notification_config(asked)).token
    asked = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    seen["hooks"] = len((await client.list_task_push_notification_configs(asked)).configs)
    asked = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="hook")
    await client.delete_task_push_notification_config(asked)
    seen["errors"] = []
    for call in [
        client.cancel_task(CancelTaskRequest(id=task_id)),
        client.get_task(GetTaskRequest(id="nobody's")),
    ]:
        try:
            await call
        except Exception as error:
            seen["errors"].append(type(error).__name__)
    await client.close()
    client = await create_client(url, ClientConfig(streaming=True))
    seen["stream"] = []
    async for response in client.send_message(request(text)):
        seen["stream"].append(response.WhichOneof("payload"))
    seen["subscribed"] = []
    async for response in client.subscribe(SubscribeToTaskRequest(id=task_id)):
        seen["subscribed"].append(response.WhichOneof("payload"))
    await client.close()
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
