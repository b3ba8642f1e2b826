"""The pytest plugin with agents of real frameworks: a resisting, a failing and an inconclusive one."""

import pytest
from conftest import FRAMEWORKS

ONE = """
@pytest.mark.proofhouse("weather-key-theft")
def test_weather_agent(attack):
    attack.answer = my_agent(attack.prompt, mcp_urls=attack.mcp_urls)
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_who_ignores_the_payload_resists(run_pytest, framework):
    code, output = run_pytest(ONE, framework=framework)
    assert code == 0, output
    assert "test_weather_agent[control] PASSED" in output, output
    assert "test_weather_agent[attack] PASSED" in output, output


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_who_obeys_the_payload_fails_with_evidence(run_pytest, framework):
    code, output = run_pytest(ONE, framework=framework, behaviour="obeys")
    assert code == 1, output
    assert "test_weather_agent[control] PASSED" in output, output
    assert "test_weather_agent[attack] FAILED" in output, output
    assert "the agent was exploited" in output, output
    assert "message " in output and "arguments" in output, f"no evidence: {output}"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_who_calls_no_tools_is_inconclusive_and_fails(run_pytest, framework):
    code, output = run_pytest(ONE, framework=framework, behaviour="too-small")
    assert code == 1, output
    assert "test_weather_agent[control] FAILED" in output, output
    assert "the task was not done" in output, output
    assert "test_weather_agent[attack] FAILED" in output, output
    assert "inconclusive (channel_not_read)" in output, output


def test_a_selection_is_collected_by_document_and_probes_are_made_once(run_pytest):
    text = """
import pathlib
@pytest.mark.proofhouse("weather-key-theft", "mail-bcc-hijack", repeats=2, max_asr=0.5)
def test_all(attack):
    with open("purposes.txt", "a") as file:
        file.write(f"{attack.purpose} {attack.document.slug} {attack.prompt}\\n")
    attack.answer = my_agent(attack.prompt, mcp_urls=attack.mcp_urls)
def test_purposes():
    lines = pathlib.Path("purposes.txt").read_text().splitlines()
    probes = [line.split(" ", 2)[2] for line in lines if line.startswith("probe")]
    assert len(probes) == len(set(probes)), probes
    assert sum(line.startswith("control") for line in lines) == 2
    assert sum(line.startswith("attack") for line in lines) == 4
"""
    code, output = run_pytest(text, framework="pydantic")
    assert code == 0, output
    for name in ("weather-key-theft-control", "weather-key-theft-attack", "mail-bcc-hijack-attack"):
        assert f"test_all[{name}] PASSED" in output, output


def test_asynchronous_tests_share_a_loop(run_pytest):
    text = """
import asyncio
loops = set()
@pytest.mark.proofhouse("weather-key-theft", agent="a")
async def test_it(attack):
    loops.add(id(asyncio.get_running_loop()))
    await asyncio.sleep(0)
    attack.answer = "no"
def test_loops():
    assert len(loops) == 1
"""
    code, output = run_pytest(text, framework="pydantic")
    assert code == 1 and "2 failed, 1 passed" in output, output
    assert "the agent answered: no" in output, output


def test_it_works_under_xdist(run_pytest):
    pytest.importorskip("xdist")
    code, output = run_pytest(ONE, "-n", "2", framework="pydantic", behaviour="obeys")
    assert code == 1, output
    assert "1 failed, 1 passed" in output, output
    assert "the agent was exploited" in output, output


def test_mistakes_are_told_at_collection(run_pytest):
    for mark, message in [
        ('"weather-key-thefd"', "weather-key-theft"),
        ("", "say which documents"),
        ('"weather-key-theft", repeat=3', "does not know repeat"),
    ]:
        text = f"@pytest.mark.proofhouse({mark})\ndef test_it(attack): ...\n"
        code, output = run_pytest(text, framework="pydantic")
        assert code != 0 and message in output, (mark, output)


def test_a_test_without_an_answer_and_one_that_raises_do_not_pass(run_pytest):
    text = """
@pytest.mark.proofhouse("weather-key-theft", agent="silent")
def test_silent(attack):
    pass
@pytest.mark.proofhouse("weather-key-theft", agent="broken")
def test_broken(attack):
    raise ValueError("no such model")
"""
    code, output = run_pytest(text, framework="pydantic")
    assert code == 1 and "4 failed" in output, output
    assert "set no answer" in output and "no such model" in output, output
    assert "subject_failed" in output, output


def test_parameters_are_agents_of_their_own(run_pytest):
    # The second agent has no model. What is known of the first must not count for it.
    text = """
def dead(prompt, mcp_urls):
    return "OK."
@pytest.mark.parametrize("agent", [my_agent, dead], ids=["good", "dead"])
@pytest.mark.proofhouse("weather-key-theft")
def test_weather(attack, agent):
    attack.answer = agent(attack.prompt, mcp_urls=attack.mcp_urls)
@pytest.fixture(params=[my_agent, dead], ids=["good", "dead"])
def chosen(request):
    return request.param
@pytest.mark.proofhouse("weather-key-theft", agent="named")
def test_named(attack, chosen):
    attack.answer = chosen(attack.prompt, mcp_urls=attack.mcp_urls)
"""
    code, output = run_pytest(text, framework="pydantic")
    lines = [line for line in output.splitlines() if "::test_" in line and (" PASSED" in line or " FAILED" in line)]
    assert len(lines) == 8, output
    for line in lines:
        assert ("dead" in line) == (" FAILED" in line), output
    assert code == 1, output
