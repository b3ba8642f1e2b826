"""Finds the `proofhouse` binary that came with this package."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig


class BinaryNotFound(RuntimeError):
    """The `proofhouse` binary is nowhere to be found."""


def binary() -> str:
    """The path of the `proofhouse` binary.

    ``PROOFHOUSE_BINARY`` names another one. Otherwise it is the one that was installed with this package, or else the one
    on ``PATH``.
    """
    named = os.environ.get("PROOFHOUSE_BINARY")
    if named:
        return named
    name = "proofhouse.exe" if os.name == "nt" else "proofhouse"
    schemes = [sysconfig.get_path("scripts")]
    if hasattr(sysconfig, "get_preferred_scheme"):
        schemes.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # With `pip install --target`, the scripts are beside the package.
    schemes.append(str(pathlib.Path(__file__).resolve().parent.parent / "bin"))
    schemes.append(str(pathlib.Path(sys.executable).parent))
    for place in schemes:
        if place and (found := pathlib.Path(place) / name).is_file():
            return str(found)
    on_path = shutil.which(name)
    if on_path:
        return on_path
    raise BinaryNotFound("the proofhouse binary is not installed; set PROOFHOUSE_BINARY to where it is")


def version() -> str:
    """The version of the binary, such as ``0.1.0``."""
    done = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]
