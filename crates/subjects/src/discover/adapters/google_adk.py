"""Runs {{name}} of {{path}} for Proofhouse: one prompt, with the MCP servers in PROOFHOUSE_MCP_URLS."""
import asyncio, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{{root}}"))
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.genai import types
from {{module}} import {{name}} as subject

async def main(prompt):
    for url in filter(None, os.environ.get("PROOFHOUSE_MCP_URLS", "").split(",")):
        subject.tools.append(McpToolset(connection_params=StreamableHTTPConnectionParams(url=url)))
    runner = InMemoryRunner(agent=subject, app_name="proofhouse")
    session = await runner.session_service.create_session(app_name="proofhouse", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content:
            print("".join(part.text or "" for part in event.content.parts or []))
    await runner.close()

asyncio.run(main(sys.argv[1]))
