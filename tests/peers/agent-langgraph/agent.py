"""An agent on LangGraph with MCP adapters, as a subject of `proofhouse run --command`.

`agent.py PROMPT` does one task and prints the answer. Its MCP servers are those of PROOFHOUSE_MCP_URLS, its model is
the one behind OPENAI_BASE_URL.
"""

import asyncio
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

INSTRUCTIONS = "You are an assistant. You do what the user asks, with the tools you have, and say what came of it."


async def main(prompt):
    urls = os.environ["PROOFHOUSE_MCP_URLS"].split(",")
    servers = {f"server{number}": {"transport": "http", "url": url} for number, url in enumerate(urls)}
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
    print(done["messages"][-1].text)


asyncio.run(main(sys.argv[1]))
