"""Agents on real frameworks, as functions in the process of their tests."""

import asyncio

# Frameworks keep connections for the next call, so all calls are made in one loop.
LOOP = asyncio.new_event_loop()
INSTRUCTIONS = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it."


def langgraph(prompt, mcp_urls):
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    async def run():
        servers = {f"server{number}": {"transport": "http", "url": url} for number, url in enumerate(mcp_urls)}
        tools = await MultiServerMCPClient(servers).get_tools()
        model = ChatOpenAI(model="mock").bind_tools(tools)

        async def think(state):
            return {"messages": [await model.ainvoke([("system", INSTRUCTIONS), *state["messages"]])]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
        done = await graph.compile().ainvoke({"messages": [("user", prompt)]}, {"recursion_limit": 80})
        return done["messages"][-1].text

    return LOOP.run_until_complete(run())


def openai(prompt, mcp_urls):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerManager, MCPServerStreamableHttp
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    async def run():
        servers = [MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=60) for url in mcp_urls]
        async with MCPServerManager(servers, strict=True, connect_timeout_seconds=60) as connected:
            agent = Agent(
                name="assistant",
                instructions=INSTRUCTIONS,
                model=OpenAIChatCompletionsModel(model="mock", openai_client=AsyncOpenAI()),
                mcp_servers=connected.active_servers,
            )
            done = Runner.run_streamed(agent, prompt, max_turns=40)
            async for _ in done.stream_events():
                pass
            return done.final_output

    return LOOP.run_until_complete(run())


def pydantic(prompt, mcp_urls):
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel

    async def run():
        toolsets = [MCPToolset(url, id=f"server{number}") for number, url in enumerate(mcp_urls)]
        agent = Agent(OpenAIChatModel("mock"), instructions=INSTRUCTIONS, toolsets=toolsets)
        async with agent:
            done = await agent.run(prompt)
        return done.output

    return LOOP.run_until_complete(run())
