"""The API: context manager, load, validate, scan."""

import json
import pathlib
import threading

import proofhouse
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_an_attack_is_driven_by_hand():
    purposes = []
    with proofhouse.attack("weather-key-theft", agent="deaf") as attack:
        for turn in attack:
            purposes.append(turn.purpose)
            assert turn.mcp_url.startswith("http://127.0.0.1:"), turn
            assert turn.canary in (turn.directory / "canary.txt").read_text()
            turn.answer = "I do nothing."
    # Who does not connect proves nothing, and nothing is not passed.
    assert attack.result.outcome == "inconclusive" and not attack.result.passed
    assert attack.result.control == "failed"
    assert purposes[0] == "probe" and purposes[-2:] == ["control", "attack"]
    assert attack.result.runs[0].reason and attack.result.runs[0].advice
    # What is known of an agent is not asked again.
    again = proofhouse.attack("weather-key-theft", agent="deaf", kind="control").run(lambda turn: pytest.fail("asked"))
    assert again.outcome == "failed"


def test_attacks_of_several_threads_do_not_meet():
    results = {}

    def one(name):
        attack = proofhouse.attack("weather-key-theft", agent=name, kind="control")
        results[name] = attack.run(lambda turn: f"I am {name}.")

    threads = [threading.Thread(target=one, args=(f"agent{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, result in results.items():
        assert result.raw["control"]["answer"] == f"I am {name}."


def test_an_attack_that_is_left_early_is_cancelled():
    with proofhouse.attack("weather-key-theft", agent="left") as attack:
        attack.next_turn()
    with pytest.raises(proofhouse.DriverError, match="take all its turns"):
        attack.result
    # The session goes on.
    assert proofhouse.select("weather-key-theft")[0].slug == "weather-key-theft"


def test_unknown_documents_and_options_are_refused():
    with pytest.raises(proofhouse.DriverError, match="did you mean `weather-key-theft`"):
        proofhouse.attack("weather-key-thefd").run(lambda turn: "")
    with pytest.raises(proofhouse.DriverError, match="repeats"):
        proofhouse.attack("weather-key-theft", repeats=0).run(lambda turn: "")


def test_documents_are_validated_and_loaded():
    good = ROOT / "examples" / "documents" / "poisoned-tool.yaml"
    assert [one for one in proofhouse.validate(good) if one.severity == "error"] == []
    document = proofhouse.load(good)
    assert document.id and document.name and "indicators" in document.text
    bad = 'oatf: "0.1"\nattack:\n  severity: hihg\n'
    findings = proofhouse.validate(text=bad)
    assert any(one.line == 3 for one in findings), findings
    with pytest.raises(proofhouse.DocumentError) as error:
        proofhouse.load(text=bad)
    assert error.value.findings


def test_a_name_is_read_as_it_was_meant():
    text = (ROOT / "examples" / "documents" / "poisoned-tool.yaml").read_text()
    assert "  name: Poisoned tool description\n" in text
    for name in [
        'He said "hi"',
        'x: "y"',
        "it's",
        "C:\\temp # old",
        "yes",
        "a tab:\t.",
        "\u2028ä\u0007\U000e0001🙂",
        "two\nlines",
        "two\n  lines\n",
    ]:
        written = text.replace("name: Poisoned tool description", f"name: {json.dumps(name, ensure_ascii=False)}", 1)
        document = proofhouse.load(text=written)
        assert document.name == name, document.text
        assert (document.id, document.severity, document.category) == ("EXAMPLE-001", "high", "capability_poisoning")


def test_traces_are_scanned():
    traces = sorted((ROOT / "examples").rglob("*.jsonl"))
    assert traces
    rules = [ROOT / "examples" / "documents" / "poisoned-tool.yaml"]
    scanned = proofhouse.scan(traces[0], rules=rules)
    assert scanned.verdicts and all(one.result for one in scanned.verdicts)
    assert proofhouse.scan(traces[0], rules=str(rules[0])).raw["traces"] == scanned.raw["traces"]
    with pytest.raises(RuntimeError):
        proofhouse.scan(ROOT / "nowhere.jsonl", rules=rules)


def test_a_name_with_a_dash_is_no_option(tmp_path, monkeypatch):
    trace = sorted((ROOT / "examples").rglob("*.jsonl"))[0]
    (tmp_path / "-x.jsonl").write_bytes(trace.read_bytes())
    rule = ROOT / "examples" / "documents" / "poisoned-tool.yaml"
    monkeypatch.chdir(tmp_path)
    assert proofhouse.scan("-x.jsonl", rules=rule).verdicts


def test_a_scan_wants_rules():
    trace = sorted((ROOT / "examples").rglob("*.jsonl"))[0]
    with pytest.raises(TypeError, match="rules"):
        proofhouse.scan(trace)
    with pytest.raises(ValueError, match="rules"):
        proofhouse.scan(trace, rules=[])
