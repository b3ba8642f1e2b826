"""Judges traces with the rules of `invariant-ai`, in an environment of its own: a line with the rules of each tool comes first,
then one with each tool, trace and parameters, and each gets a line with the number of errors that the rules about the tool raise."""

import json
import sys

from invariant.analyzer import LocalPolicy

policies = {tool: LocalPolicy.from_string(rules) for tool, rules in json.loads(sys.stdin.readline()).items()}
for line in sys.stdin:
    tool, trace, parameters = json.loads(line)
    print(len(policies[tool].analyze(trace, **parameters).errors), flush=True)
