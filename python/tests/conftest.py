"""Runs tests of tests: each writes a small project, runs pytest in it with an agent of a real framework, and looks at the
output. The frameworks are those of PROOFHOUSE_PEERS, the model is the scripted one of tests/truth."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "truth"))
# Those whose frameworks are installed elsewhere; packages of the tests come first.
FRAMEWORKS = ("langgraph", "openai", "pydantic")


@pytest.fixture(scope="session")
def model():
    """The scripted model, for as long as the tests run."""
    from model import ScriptedModel

    with ScriptedModel(1) as model:
        yield model


@pytest.fixture
def run_pytest(tmp_path, model):
    """Runs pytest on a text, with an agent whose model behaves like this; gives what it printed."""

    def run(text, *arguments, behaviour="ignores", framework="langgraph", environment=()):
        from behaviours import BEHAVIOURS

        chosen = next(one for one in BEHAVIOURS if one.name == behaviour)
        (tmp_path / "my_agents.py").write_text((pathlib.Path(__file__).parent / "my_agents.py").read_text())
        (tmp_path / "test_it.py").write_text(f"from my_agents import {framework} as my_agent\nimport pytest\n{text}")
        peers = os.environ.get("PROOFHOUSE_PEERS")
        interpreter = f"{peers}/agent-{framework}/venv/bin/python"
        if not peers or not pathlib.Path(interpreter).exists():
            pytest.skip(f"SKIPPED: no framework {framework}; run scripts/peers and set PROOFHOUSE_PEERS")
        # What pytest needs is taken from this interpreter, after what the framework has.
        here = [str(pathlib.Path(pytest.__file__).parent.parent)]
        installed = os.environ.get("PROOFHOUSE_PYTHON_PACKAGE")
        package = installed or str(ROOT / "python" / "src")
        # A package that is installed is found by its entry point.
        plugin = [] if installed else ["-p", "proofhouse.pytest_plugin"]
        done = subprocess.run(
            [interpreter, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-v", *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([package, *here]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "OPENAI_BASE_URL": f"{model.base_url(chosen)}/v1",
                "OPENAI_API_KEY": "none",
                **dict(environment),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    return run
