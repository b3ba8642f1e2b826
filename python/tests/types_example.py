"""Passes a strict type checker only if the types say what the package does; test_types.py runs one over it."""

from __future__ import annotations

from pathlib import Path

import proofhouse
from proofhouse.pytest_plugin import AttackFixture


def my_agent(prompt: str, mcp_urls: list[str]) -> str:
    return f"{prompt} {mcp_urls[0]}"


def in_a_test(attack: AttackFixture) -> None:
    attack.answer = my_agent(attack.prompt, mcp_urls=attack.mcp_urls)


with proofhouse.attack("weather-key-theft", repeats=5, max_asr=0.1, deadline=10.0) as attack:
    for turn in attack:
        try:
            turn.answer = my_agent(turn.prompt, turn.mcp_urls)
        except RuntimeError as error:
            attack.fail(error)
result: proofhouse.Result = attack.result
reasons: list[str | None] = [run.reason for run in result.runs]
first: str | None = result.runs[0].evidence[0].text
slugs: list[str] = [one.slug for one in proofhouse.select("*", protocol=["mcp"], severity="high")]
document: proofhouse.Document = proofhouse.load(Path("attack.yaml"))
findings: list[proofhouse.Finding] = proofhouse.validate("attack.yaml", Path("other.yaml"))
matched: tuple[proofhouse.Verdict, ...] = proofhouse.scan("trace.jsonl", rules=["attack.yaml"]).matched

proofhouse.attack("weather-key-theft", repeat=5)  # type: ignore[call-arg]
proofhouse.attack("weather-key-theft", kind="twin")  # type: ignore[arg-type]
proofhouse.select(severities=["high"])  # type: ignore[call-arg]
turn.failed(RuntimeError())  # type: ignore[attr-defined]
