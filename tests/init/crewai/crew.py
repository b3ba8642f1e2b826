import os

from crewai import LLM, Agent, Crew, Task

researcher = Agent(
    role="Researcher",
    goal="Do what the user asks, with the tools you have",
    backstory="You work for the user.",
    llm=LLM(model="openai/gpt-5", base_url=os.environ.get("OPENAI_BASE_URL")),
)

if __name__ == "__main__":
    task = Task(description="Say hello.", expected_output="A greeting", agent=researcher)
    print(Crew(agents=[researcher], tasks=[task]).kickoff())
