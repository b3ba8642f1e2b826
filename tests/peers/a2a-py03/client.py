"""A client of A2A 0.3: reads the card at URL, sends TEXT twice (whole and streamed), and asks for
all there is to ask about the task.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys
import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)
from a2a.utils import get_message_text
from a2a.utils.parts import get_text_parts


def message(text):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))])


def texts(task):
    found = ["".join(get_text_parts(artifact.parts)) for artifact in task.artifacts or []]
    return found + [get_message_text(task.status.message)]


def kind(update):
    return "task" if update is None else update.kind


async def main(url, text):
    seen = {}
    client = await ClientFactory.connect(url, ClientConfig(streaming=False))
    card = await client.get_card()
    seen["card"] = card.name
    seen["skill"] = card.skills[0].description
    async for task, _ in client.send_message(message(text)):
        seen["send"] = texts(task)
        task_id = task.id
    task = await client.get_task(TaskQueryParams(id=task_id))
    seen["get"] = task.status.state.value
    hook = PushNotificationConfig(id="hook", url="http://127.0.0.1:9/", token="t")
    asked = TaskPushNotificationConfig(task_id=task_id, push_notification_config=hook)
    seen["set"] = (await client.set_task_callback(asked)).push_notification_config.url
    asked = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id="hook")
    seen["hook"] = (await client.get_task_callback(asked)).push_notification_config.token
    seen["errors"] = []
    for call in [client.cancel_task(TaskIdParams(id=task_id)), client.get_task(TaskQueryParams(id="nobody's"))]:
        try:
            await call
        except Exception as error:
            seen["errors"].append(error.error.code)
    client = await ClientFactory.connect(url, ClientConfig(streaming=True))
    seen["stream"] = []
    async for _, update in client.send_message(message(text)):
        seen["stream"].append(kind(update))
    seen["subscribed"] = []
    async for _, update in client.resubscribe(TaskIdParams(id=task_id)):
        seen["subscribed"].append(kind(update))
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
