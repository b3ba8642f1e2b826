from smolagents import CodeAgent, OpenAIModel

model = OpenAIModel(model_id="gpt-5")
agent = CodeAgent(tools=[], model=model)

if __name__ == "__main__":
    print(agent.run("Calculate the sum of numbers from 1 to 10"))
