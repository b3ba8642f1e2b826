from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")
set_tracing_disabled(True)

agent = Agent(name="Math Tutor", instructions="You provide help with math problems.", model="gpt-5")

if __name__ == "__main__":
    print(Runner.run_sync(agent, "What is 2 + 2?").final_output)
