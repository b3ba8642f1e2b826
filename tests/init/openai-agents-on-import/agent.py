from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")
set_tracing_disabled(True)

agent = Agent(name="Assistant", instructions="You are a helpful assistant", model="gpt-5")

result = Runner.run_sync(agent, "Write a haiku about recursion in programming.")
print(result.final_output)
