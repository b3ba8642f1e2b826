"""An agent of A2A 1.0 that does what it is told: it says back every message, as an artifact.

Prints the port it listens on as one line. With `compat`, clients of 0.3 are served too.
"""

import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        text = "I will: " + get_message_text(context.message)
        await updater.add_artifact([new_text_part(text)], name="answer")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
url = f"http://127.0.0.1:{port}/"
card = AgentCard(
    name="Echo",
    description="Says back what it is told",
    version="1.0.0",
    supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Says it back", tags=["echo"])],
)
handler = DefaultRequestHandlerV2(Echo(), InMemoryTaskStore(), card)
compat = "compat" in sys.argv[1:]
routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/", enable_v0_3_compat=compat)
print(port, flush=True)
server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
server.run(sockets=[listener])
