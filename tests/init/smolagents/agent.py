from smolagents import OpenAIModel, ToolCallingAgent

model = OpenAIModel(model_id="gpt-5")
agent = ToolCallingAgent(tools=[], model=model)

if __name__ == "__main__":
    print(agent.run("Calculate the sum of numbers from 1 to 10"))
