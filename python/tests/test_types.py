"""The types say what the package does: a strict type checker passes over the package and over an example of its use."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_the_types_say_what_the_package_does(tmp_path):
    pytest.importorskip("mypy", reason="SKIPPED: no mypy; run scripts/peers")
    package = pathlib.Path(os.environ.get("PROOFHOUSE_PYTHON_PACKAGE") or ROOT / "python" / "src") / "proofhouse"
    # Without this file, checkers ignore the types of an installed package.
    assert (package / "py.typed").is_file()
    for file in package.glob("*.py"):
        (tmp_path / "proofhouse").mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "proofhouse")
    shutil.copy(ROOT / "python" / "tests" / "types_example.py", tmp_path)
    done = subprocess.run(
        # Strict: a comment that expects an error is an error where there is none.
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--python-version", "3.10", "types_example.py", "proofhouse"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
