"""What a policy of the guard says, as far as rules of `invariant-ai` can express it, and a session that asks them.

A rule of it sees flows (`a -> b`) and whether one text stands in another. So each deciding argument of each effect gets one:
its value stands in an earlier result of an untrusted tool, or (`by_field`) in the fields of it that others write, and not in what
the user asked for. The guard does not see what the user asked for; these rules do. What they cannot say: that a value stands in no
trusted result, that somebody approved it, that it comes in another form, and which fields read like text.
"""

import json
import os
import subprocess
import threading

import yaml
from served import ServedSuite

HEAD = """raise "a value came from a result" if:
    (output: ToolOutput) -> (call: ToolCall)
    output.tool_call_id in input.{sources}
    call.id == input.call
    "{argument}" in call.function.arguments
"""
ONE = "    not (call.function.arguments.{argument} in input.prompt)\n"
EACH = "    (value: str) in call.function.arguments.{argument}\n    not (value in input.prompt)\n"


def names(value):
    return [value] if isinstance(value, str) else value


def rules_of(policy, suite, by_field):
    """The rules of a policy for the tools of a suite, by the tool that they are about, and the tools that each kind of results
    comes from."""
    with open(policy, encoding="utf-8") as file:
        entries = yaml.safe_load(file)["tools"]
    lists = {
        (tool.name, key)
        for tool in suite.tools
        for key, schema in tool.parameters.model_json_schema()["properties"].items()
        if "array" in json.dumps(schema)
    }
    wholes, fields = [], {}
    for entry in entries:
        if entry.get("returns") != "untrusted":
            continue
        written = entry.get("free_text")
        if not by_field or written is None or "*" in written:
            wholes += names(entry["tool"])
        else:
            for field in written:
                fields.setdefault(field, []).extend(names(entry["tool"]))
    rules = {}
    for entry in entries:
        if not entry.get("effects"):
            continue
        for tool in names(entry["tool"]):
            properties = next(t for t in suite.tools if t.name == tool).parameters.model_json_schema()["properties"]
            for argument in entry.get("decides") or properties:
                if argument not in properties:
                    continue
                is_list = (tool, argument) in lists
                value = "value" if is_list else f"call.function.arguments.{argument}"
                for field in [None, *fields]:
                    rule = HEAD.format(sources=sources_of(field), argument=argument)
                    rule += (EACH if is_list else ONE).format(argument=argument)
                    if field is None:
                        rule += f"    {value} in output.content\n"
                    else:
                        rule += f"    (item: dict) in json_loads(output.content)\n    {value} in item.{field}\n"
                    rules[tool] = rules.get(tool, "") + rule + "\n"
    return rules, {sources_of(None): wholes, **{sources_of(field): tools for field, tools in fields.items()}}


def sources_of(field):
    """What rules call the results whose field others write, or all of them."""
    return f"results_with_{field}" if field else "results"


def as_text(value):
    """Numbers as texts: its rules have no function that makes one of the other. What is not given is left out."""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value if isinstance(value, bool) else str(value)


class InvariantPeer:
    """The program with the rules of one suite."""

    def __init__(self, python, script, rules, sources):
        self.tools = set(rules)
        self.sources = sources
        self.lock = threading.Lock()
        # Rules over the fields of a list need more steps than it allows unless told.
        environment = {**os.environ, "INVARIANT_MAX_ITERATIONS": "100000000"}
        self.process = subprocess.Popen(
            [python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._send(rules)

    def _send(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def errors(self, tool, trace, parameters):
        """How many errors the rules about a tool raise. No rule is about a tool without an effect."""
        if tool not in self.tools:
            return 0
        with self.lock:
            self._send([tool, trace, parameters])
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("invariant-ai ended; what it said is above")
        return int(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


class InvariantSession:
    """Asks whenever its rules raise an error about a call."""

    def __init__(self, peer, suite, environment, prompt):
        self.peer = peer
        self.served = ServedSuite(suite, environment)
        self.trace = [{"role": "user", "content": prompt}]
        # What rules get beside the trace: they would look for it in every message otherwise, and take minutes.
        self.parameters = {"prompt": prompt, **{name: [] for name in peer.sources}}

    def call(self, name, arguments, allows):
        number = str(len(self.trace))
        function = {"name": name, "arguments": as_text(arguments)}
        call = {"id": number, "type": "function", "function": function}
        pending = [*self.trace, {"role": "assistant", "content": "", "tool_calls": [call]}]
        asked = self.peer.errors(name, pending, {**self.parameters, "call": number}) > 0
        if asked and not allows:
            return "denied"
        for results, tools in self.peer.sources.items():
            if name in tools:
                self.parameters[results].append(number)
        result = self.served.answer("tools/call", {"name": name, "arguments": arguments})
        self.trace = [*pending, {"role": "tool", "tool_call_id": number, "content": result["content"][0]["text"]}]
        return "allowed" if asked else "passed"

    def end(self):
        pass
