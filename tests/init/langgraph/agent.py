from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

model = ChatOpenAI(model="gpt-5")


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def call_model(state: State):
    system = SystemMessage("You are a helpful assistant that does arithmetic.")
    return {"messages": [model.bind_tools([multiply]).invoke([system, *state["messages"]])]}


def call_tools(state: State):
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(str(multiply.invoke(call["args"])), tool_call_id=call["id"]) for call in calls]}


def should_continue(state: State):
    return "tools" if state["messages"][-1].tool_calls else END


builder = StateGraph(State)
builder.add_node("model", call_model)
builder.add_node("tools", call_tools)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", should_continue, ["tools", END])
builder.add_edge("tools", "model")
agent = builder.compile()

if __name__ == "__main__":
    print(agent.invoke({"messages": [HumanMessage("Multiply 3 and 4.")]})["messages"][-1].content)
