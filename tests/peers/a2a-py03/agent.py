"""Talks to an agent over A2A 0.3 with the official client, for `proofhouse agent serve`.

`agent.py URL MESSAGE WRITE`: the second message is one that needs an approval. It prints what it saw as one line of
JSON.
"""

import asyncio
import json
import sys
import uuid

from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)
from a2a.utils.parts import get_text_parts


def message(text, **ids):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **ids)


async def send(client, *arguments, **ids):
    async for task, _ in client.send_message(message(*arguments, **ids)):
        found = task
    return found


async def main(url, text, write):
    seen = {}
    client = await ClientFactory.connect(url, ClientConfig(streaming=False))
    card = await client.get_card()
    seen["card"] = [card.name] + [skill.id for skill in card.skills]
    task = await send(client, text)
    answers = ["".join(get_text_parts(artifact.parts)) for artifact in task.artifacts]
    seen["send"] = [task.status.state.value] + answers
    seen["get"] = (await client.get_task(TaskQueryParams(id=task.id))).status.state.value
    waiting = await send(client, write)
    approved = await send(client, "approve", task_id=waiting.id, context_id=waiting.context_id)
    seen["approval"] = [one.status.state.value for one in (waiting, approved)]
    seen["errors"] = []
    hook = PushNotificationConfig(id="hook", url="http://127.0.0.1:9/", token="t")
    for call in [
        client.cancel_task(TaskIdParams(id=task.id)),
        client.get_task(TaskQueryParams(id="nobody's")),
        client.set_task_callback(TaskPushNotificationConfig(task_id=task.id, push_notification_config=hook)),
    ]:
        try:
            await call
        except Exception as error:
            seen["errors"].append(error.error.code)
    client = await ClientFactory.connect(url, ClientConfig(streaming=True))
    seen["stream"] = []
    async for _, update in client.send_message(message(text, context_id=task.context_id)):
        seen["stream"].append("task" if update is None else update.kind)
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
