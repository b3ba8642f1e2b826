import asyncio

from agent_framework.openai import OpenAIChatCompletionClient

agent = OpenAIChatCompletionClient(model="gpt-5").as_agent(
    name="HelloAgent",
    instructions="You are a friendly assistant. Keep your answers brief.",
)


async def main():
    print(await agent.run("What is the capital of France?"))


if __name__ == "__main__":
    asyncio.run(main())
