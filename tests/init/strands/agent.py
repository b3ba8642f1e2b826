from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def letter_counter(word: str, letter: str) -> int:
    """Count occurrences of a letter in a word."""
    return word.lower().count(letter.lower())


agent = Agent(model=OpenAIModel(model_id="gpt-5"), tools=[letter_counter])

if __name__ == "__main__":
    agent("How many letter R's are in the word strawberry?")
