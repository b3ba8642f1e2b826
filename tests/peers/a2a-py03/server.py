"""An agent of A2A 0.3 that does what it is told: it says back every message, as an artifact.

Prints the port it listens on as one line.
"""

import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        text = "I will: " + context.get_user_input()
        await updater.add_artifact([Part(root=TextPart(text=text))], name="answer")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
card = AgentCard(
    name="Echo",
    description="Says back what it is told",
    version="1.0.0",
    url=f"http://127.0.0.1:{port}/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Says it back", tags=["echo"])],
)
app = A2AStarletteApplication(card, DefaultRequestHandler(Echo(), InMemoryTaskStore())).build()
print(port, flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
server.run(sockets=[listener])
