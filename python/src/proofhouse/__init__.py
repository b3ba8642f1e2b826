"""Stress-tests AI agents: attacks them in the process of their own tests, checks threat documents, scans traces.

The pytest plugin is the usual way in (see :mod:`proofhouse.pytest_plugin`). Those who drive attacks themselves use
:func:`attack`::

    import proofhouse

    with proofhouse.attack("weather-key-theft") as attack:
        for turn in attack:                # channel probes, the control run, the attack
            turn.answer = my_agent(turn.prompt, mcp_urls=turn.mcp_urls)
    assert attack.result.passed, attack.result.report

:func:`load`, :func:`validate` and :func:`scan` are for threat documents and recorded traces.
"""

from ._binary import BinaryNotFound, binary, version
from ._documents import Document, DocumentError, Finding, ScanResult, Verdict, load, scan, validate
from ._driver import Attack, Driver, DriverError, Evidence, Result, Run, Selected, Turn, attack, select

__all__ = [
    "Attack",
    "BinaryNotFound",
    "Document",
    "DocumentError",
    "Driver",
    "DriverError",
    "Evidence",
    "Finding",
    "Result",
    "Run",
    "ScanResult",
    "Selected",
    "Turn",
    "Verdict",
    "attack",
    "binary",
    "load",
    "scan",
    "select",
    "validate",
    "version",
]
