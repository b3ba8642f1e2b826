"""Threat documents and traces: load, validate, scan."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from ._binary import binary


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a file."""

    file: str
    #: ``error`` or ``warning``.
    severity: str
    #: A stable code; ``proofhouse explain CODE`` says more.
    code: str
    message: str
    line: int | None
    column: int | None
    path: str | None
    help: str | None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.severity}[{self.code}]: {self.message}"


class DocumentError(ValueError):
    """A document that cannot be used; ``findings`` say why."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = tuple(findings)


@dataclass(frozen=True)
class Document:
    """A threat document, normalized: every default is written out."""

    id: str | None
    name: str
    severity: str | None
    category: str | None
    #: The canonical text, as ``proofhouse fmt`` writes it.
    text: str


@dataclass(frozen=True)
class Verdict:
    """What a document says about a trace."""

    document: str
    #: ``exploited``, ``partial``, ``not_exploited`` or ``error``.
    result: str
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class ScanResult:
    """What a scan found."""

    verdicts: tuple[Verdict, ...]
    raw: Mapping[str, Any]

    @property
    def matched(self) -> tuple[Verdict, ...]:
        """The verdicts that say that something got through."""
        return tuple(one for one in self.verdicts if one.result in ("exploited", "partial"))


def _run(arguments: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary(), *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def _refuse(done: subprocess.CompletedProcess[str]) -> RuntimeError:
    return RuntimeError(done.stderr.strip() or f"proofhouse ended with {done.returncode}")


def validate(*paths: str | os.PathLike[str], text: str | None = None) -> list[Finding]:
    """What is wrong with threat documents, manifests, labelled cases or ``proofhouse.yaml``; nothing if the list is empty.

    Give files and directories, or ``text``.
    """
    names = [_path(path) for path in paths] if text is None else ["-"]
    done = _run(["validate", "--format", "json", *names], text)
    if done.returncode not in (0, 1):
        raise _refuse(done)
    findings: list[Finding] = []
    for file in json.loads(done.stdout)["files"]:
        for one in file["diagnostics"]:
            span = one.get("span") or {}
            findings.append(
                Finding(
                    file=file["path"],
                    severity=one["severity"],
                    code=one["code"],
                    message=one["message"],
                    line=span.get("line"),
                    column=span.get("column"),
                    path=one.get("path"),
                    help=one.get("help"),
                )
            )
    return findings


def load(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> Document:
    """Loads a threat document: read, checked and normalized. Raises :class:`DocumentError` when it cannot be used."""
    if (path is None) == (text is None):
        raise TypeError("give either a path or a text")
    name = "-" if path is None else os.fspath(path)
    if path is not None:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    done = _run(["fmt", "-"], text)
    if done.returncode != 0:
        errors = [one for one in validate(text=text) if one.severity == "error"]
        if errors:
            raise DocumentError([Finding(**{**vars(one), "file": name}) for one in errors])
        raise _refuse(done)
    fields = _top_fields(done.stdout)
    return Document(
        id=fields.get("id"),
        name=fields.get("name", "Untitled"),
        severity=fields.get("severity"),
        category=fields.get("category"),
        text=done.stdout,
    )


def _top_fields(text: str) -> dict[str, str]:
    """The plain fields of the attack, from the canonical text, which has one key per line."""
    fields: dict[str, str] = {}
    part = section = ""
    lines = text.split("\n")
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip(" "))
        key, colon, value = line[indent:].partition(":")
        if not colon:
            continue
        if indent == 0:
            part = key
        if indent == 2:
            section = key
        if part != "attack" or not value.strip():
            continue
        if indent == 2 and key in ("id", "name", "severity"):
            fields[key] = _scalar(value.strip(), lines[place + 1 :], indent + 2)
        if indent == 4 and (section, key) in (("severity", "level"), ("classification", "category")):
            fields["severity" if key == "level" else key] = _scalar(value.strip(), lines[place + 1 :], indent + 2)
    return fields


# How the canonical text writes what it cannot show in double quotes.
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}


def _scalar(value: str, below: Sequence[str], indent: int) -> str:
    """A text as the canonical form writes it: plain, in double quotes, or as a block of the lines below."""
    if value.startswith('"'):

        def meant(match: re.Match[str]) -> str:
            code = match[1] or match[2] or match[3]
            return chr(int(code, 16)) if code else _SHORT.get(match[4], match[4])

        return _ESCAPE.sub(meant, value[1:-1])
    if value not in ("|", "|-", "|+"):
        return value
    block: list[str] = []
    for line in below:
        if line and not line.startswith(" " * indent):
            break
        block.append(line[indent:])
    whole = "\n".join(block)
    body = whole.rstrip("\n")
    return body + {"|": "\n", "|-": ""}.get(value, "\n" * (len(whole) - len(body) + 1))


def _path(path: str | os.PathLike[str]) -> str:
    """The path as an argument; one that begins with a dash would be an option."""
    name = os.fspath(path)
    return os.path.join(os.curdir, name) if name.startswith("-") else name


def scan(
    trace: str | os.PathLike[str],
    *,
    rules: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> ScanResult:
    """Judges a recorded trace by threat documents: ``rules`` names their file or directory, or several."""
    if isinstance(rules, (str, os.PathLike)):
        rules = [rules]
    if not rules:
        raise ValueError("rules names no threat document; a trace is judged by those of rules")
    arguments = ["scan", _path(trace), "--format", "json"]
    for rule in rules:
        arguments += ["--rules", _path(rule)]
    done = _run(arguments)
    if done.returncode not in (0, 1):
        raise _refuse(done)
    raw = json.loads(done.stdout)
    incomplete = [one for one in raw["traces"] if not one["complete"]]
    if incomplete:
        # Not seen is not passed.
        raise RuntimeError(f"{incomplete[0]['path']}: {incomplete[0]['error']}")
    verdicts = tuple(
        Verdict(document=one.get("id") or "", result=one["result"], raw=one)
        for trace in raw["traces"]
        for one in trace["documents"]
    )
    return ScanResult(verdicts=verdicts, raw=raw)
