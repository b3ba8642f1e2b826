import asyncio

from agent_framework.openai import OpenAIChatCompletionClient


async def main():
    agent = OpenAIChatCompletionClient(model="gpt-5").as_agent(name="HelloAgent", instructions="Be brief.")
    print(await agent.run("What is the capital of France?"))


if __name__ == "__main__":
    asyncio.run(main())
