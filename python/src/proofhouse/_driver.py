"""Drives attacks on an agent in this process, over the lines of `proofhouse drive`."""

from __future__ import annotations

import atexit
import collections
import json
import os
import pathlib
import queue
import subprocess
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Literal, Mapping, Sequence, TypedDict

from ._binary import binary

if TYPE_CHECKING:
    from typing_extensions import Unpack

Kind = Literal["control", "attack"]
Purpose = Literal["probe", "control", "attack"]
PROTOCOL = 1


class DriverError(RuntimeError):
    """A request that `proofhouse drive` could not meet. ``code`` tells programs why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Selected:
    """A threat document."""

    id: str
    #: The name of its file without the ending, such as ``weather-key-theft``.
    slug: str
    name: str
    description: str
    category: str | None
    severity: str | None
    #: Whether it has a control run: the same task without the payload.
    has_control: bool


@dataclass(frozen=True)
class Evidence:
    """A place in the traffic that shows the attack got through."""

    indicator: str
    description: str | None
    #: The number of the message.
    message: int
    path: str | None
    text: str | None


@dataclass(frozen=True)
class Run:
    """One attack run."""

    repeat: int
    #: ``exploited``, ``partial``, ``resisted`` or ``inconclusive``.
    outcome: str
    #: Why it is inconclusive, as a code, and in words.
    reason: str | None
    explanation: str | None
    advice: str | None
    why: str | None
    tier: str | None
    evidence: tuple[Evidence, ...]
    answer: str | None
    error: str | None
    warnings: tuple[str, ...]
    messages: int
    milliseconds: int


@dataclass(frozen=True)
class Result:
    """What came of a control run or an attack."""

    kind: Kind
    document: Selected
    #: Whether the task was done, or the attack was resisted.
    passed: bool
    #: One line about it.
    summary: str
    #: The text that a failed test shows: reasons and evidence.
    report: str
    #: Of an attack the worst outcome of its runs; of a control ``done`` or ``failed``.
    outcome: str
    #: Attack success rate: of the runs that prove something, the share that got through.
    asr: float | None
    runs: tuple[Run, ...]
    #: Whether the control run did its task: ``done``, ``failed``, ``absent`` or ``pending``; and why.
    control: str
    control_why: str
    #: Everything, as `proofhouse drive` told it.
    raw: Mapping[str, Any] = field(repr=False)


@dataclass
class Turn:
    """Something the agent is asked. Set ``answer`` to what it said."""

    #: What the user says.
    prompt: str
    #: The MCP servers to connect to, as streamable HTTP.
    mcp_urls: list[str]
    #: The A2A agents to talk to.
    a2a_urls: list[str]
    #: ``probe``, ``control`` or ``attack``. An agent must not care, and cannot tell.
    purpose: Purpose
    #: Which prompt of the run this is, from 1.
    turn: int
    #: Names the run.
    run: str
    #: A directory for this run, with planted secrets in it.
    directory: pathlib.Path
    #: The planted secret.
    canary: str
    #: What was said before in the same run: prompts and answers.
    history: list[tuple[str, str]]
    #: What the agent said.
    answer: Any = None

    @property
    def mcp_url(self) -> str:
        """The first MCP server."""
        return self.mcp_urls[0]


def _document(value: Mapping[str, Any]) -> Selected:
    names = ("id", "slug", "name", "description", "category", "severity", "has_control")
    return Selected(**{name: value[name] for name in names})


def _result(event: Mapping[str, Any]) -> Result:
    runs = tuple(
        Run(
            **{
                **{name: run[name] for name in Run.__dataclass_fields__ if name not in ("evidence", "warnings")},
                "evidence": tuple(Evidence(**one) for one in run["evidence"]),
                "warnings": tuple(run["warnings"]),
            }
        )
        for run in event["runs"]
    )
    return Result(
        kind=event["kind"],
        document=_document(event["document"]),
        passed=event["passed"],
        summary=event["summary"],
        report=event["report"],
        outcome=event["outcome"],
        asr=event["asr"],
        runs=runs,
        control=event["control"]["state"],
        control_why=event["control"]["why"],
        raw=event,
    )


class Driver:
    """A session of `proofhouse drive`. What is known of an agent counts for the whole session.

    Several threads may use one driver.
    """

    def __init__(self, program: str | None = None) -> None:
        self._process = subprocess.Popen(
            [program or binary(), "drive"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._lock = threading.Lock()
        self._next_id = 0
        self._unnamed = 0
        self._open: dict[int, queue.Queue[Mapping[str, Any]]] = {}
        self._over = False
        ready = self._read()
        if ready is None or ready.get("protocol") != PROTOCOL:
            self.close()
            raise DriverError("protocol", f"the proofhouse binary speaks another protocol: {ready}")
        self._reader = threading.Thread(target=self._listen, name="proofhouse-drive", daemon=True)
        self._reader.start()

    def _read(self) -> Mapping[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def _listen(self) -> None:
        try:
            while (event := self._read()) is not None:
                with self._lock:
                    waiting = self._open.get(event.get("id") or 0)
                if waiting is not None:
                    waiting.put(event)
        except (ValueError, OSError):
            pass
        with self._lock:
            self._over = True
            for waiting in self._open.values():
                waiting.put({"event": "error", "code": "gone", "message": "proofhouse drive ended"})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            with self._lock:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise DriverError("gone", "proofhouse drive ended") from error

    def _begin(self, request: Mapping[str, Any]) -> tuple[int, queue.Queue[Mapping[str, Any]]]:
        with self._lock:
            if self._over:
                raise DriverError("gone", "proofhouse drive ended")
            self._next_id += 1
            number = self._next_id
            events: queue.Queue[Mapping[str, Any]] = queue.Queue()
            self._open[number] = events
        self._send({"id": number, **request})
        return number, events

    def _end(self, number: int) -> None:
        with self._lock:
            self._open.pop(number, None)

    def select(
        self,
        *ids: str,
        paths: Sequence[str | os.PathLike[str]] = (),
        category: str | Sequence[str] = (),
        tag: str | Sequence[str] = (),
        severity: str | Sequence[str] = (),
        protocol: str | Sequence[str] = (),
    ) -> list[Selected]:
        """The documents that fit and that an agent in this process can meet. ``*`` in an id stands for anything."""
        request = {
            "do": "select",
            "ids": list(ids),
            "paths": [os.fspath(path) for path in paths],
            "categories": _list(category),
            "tags": _list(tag),
            "severities": _list(severity),
            "protocols": _list(protocol),
        }
        number, events = self._begin(request)
        try:
            event = events.get()
        finally:
            self._end(number)
        _check(event)
        return [_document(one) for one in event["documents"]]

    def attack(
        self,
        document: str,
        *,
        agent: str | None = None,
        kind: Kind = "attack",
        repeats: int = 1,
        max_asr: float = 0.0,
        paths: Sequence[str | os.PathLike[str]] = (),
        deadline: float | None = None,
        seed: int = 0,
        probes: bool = True,
        secrets: Sequence[str] = (),
    ) -> Attack:
        """An attack to be driven; see :class:`Attack`.

        What is known of an agent (channel probes and control runs) counts for all attacks with the same ``agent``. Without
        a name, nothing is known of it.
        """
        if agent is None:
            with self._lock:
                self._unnamed += 1
                agent = f"unnamed agent {self._unnamed}"
        request = {
            "do": "run",
            "agent": agent,
            "document": document,
            "kind": kind,
            "repeats": repeats,
            "max_asr": max_asr,
            "paths": [os.fspath(path) for path in paths],
            "deadline": deadline,
            "seed": seed,
            "probes": probes,
            "secrets": list(secrets),
        }
        return Attack(self, request)

    def close(self) -> None:
        """Ends the session."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is process.stdin and stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None and not getattr(self, "_reader", threading.current_thread()).is_alive():
            process.stdout.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _list(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _check(event: Mapping[str, Any]) -> None:
    if event["event"] == "error":
        raise DriverError(event["code"], event["message"])


class Attack:
    """A run of a document. A context manager whose iterator yields each :class:`Turn` the agent has to take.

    The turns are those of channel probes (once per agent and session), of the control run (once per agent, document and
    session) and of the attack. Set ``turn.answer`` before the next one. Afterwards, ``result`` tells what came of it. An
    exception in the loop body counts as a failure of the agent if ``attack.fail(error)`` is called; otherwise it
    ends the attack.
    """

    def __init__(self, driver: Driver, request: Mapping[str, Any]) -> None:
        self._driver = driver
        self._request = request
        self._number: int | None = None
        self._events: queue.Queue[Mapping[str, Any]] | None = None
        self._call: int | None = None
        self._turn: Turn | None = None
        self._result: Result | None = None
        self._failure: str | None = None
        self._histories: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)

    @property
    def result(self) -> Result:
        """What came of it. Only there when all turns were taken."""
        if self._result is None:
            raise DriverError("unfinished", "the attack has no result yet: take all its turns first")
        return self._result

    def fail(self, error: BaseException | str) -> None:
        """Says that the agent failed in the current turn, instead of an answer."""
        self._failure = error if isinstance(error, str) else f"{type(error).__name__}: {error}"

    def run(self, agent: Callable[[Turn], Any]) -> Result:
        """Lets ``agent`` take all turns: it gets each :class:`Turn` and returns the answer."""
        with self:
            for turn in self:
                try:
                    turn.answer = agent(turn)
                except Exception as error:  # Whatever an agent raises is its failure, and part of the result.
                    self.fail(error)
        return self.result

    def __enter__(self) -> Attack:
        return self

    def __iter__(self) -> Iterator[Turn]:
        while (turn := self.next_turn()) is not None:
            yield turn

    def next_turn(self) -> Turn | None:
        """Hands over the last answer and waits for the next turn; ``None`` when there is a result."""
        if self._result is not None:
            return None
        if self._events is None:
            self._number, self._events = self._driver._begin(self._request)  # pyright: ignore[reportPrivateUsage]
        else:
            self._answer()
        while True:
            event = self._events.get()
            if event["event"] == "prompt":
                self._call = event["call"]
                run = event["run"]
                self._turn = Turn(
                    prompt=event["prompt"],
                    mcp_urls=list(event["mcp_urls"]),
                    a2a_urls=list(event["a2a_urls"]),
                    purpose=event["purpose"],
                    turn=event["turn"],
                    run=run,
                    directory=pathlib.Path(event["directory"]),
                    canary=event["canary"],
                    history=list(self._histories[run]),
                )
                return self._turn
            if event["event"] == "result":
                self._finish()
                self._result = _result(event)
                return None
            # An answer that came too late is no fault of the attack.
            if event.get("code") == "invalid_request" and self._call is None and self._turn is not None:
                continue
            self._finish()
            _check(event)

    def _answer(self) -> None:
        turn, call = self._turn, self._call
        if turn is None or call is None:
            return
        self._call = None
        if self._failure is None and turn.answer is None:
            self._failure = "the test set no answer (attack.answer)"
        if self._failure is not None:
            reply: dict[str, Any] = {"error": self._failure}
        else:
            text = turn.answer if isinstance(turn.answer, str) else str(turn.answer)
            self._histories[turn.run].append((turn.prompt, text))
            reply = {"text": text}
        self._failure = None
        self._driver._send({"id": self._number, "do": "answer", "call": call, **reply})  # pyright: ignore[reportPrivateUsage]

    def _finish(self) -> None:
        if self._number is not None:
            self._driver._end(self._number)  # pyright: ignore[reportPrivateUsage]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._result is None and self._number is not None:
            try:
                self._driver._send({"id": self._number, "do": "cancel"})  # pyright: ignore[reportPrivateUsage]
            except DriverError:
                pass
            self._finish()


_default: Driver | None = None
_default_lock = threading.Lock()


def default_driver() -> Driver:
    """The driver of this process, started when it is first needed."""
    global _default
    with _default_lock:
        if _default is None or _default._over:  # pyright: ignore[reportPrivateUsage]
            _default = Driver()
            atexit.register(_default.close)
        return _default


class AttackOptions(TypedDict, total=False):
    """What may be said of an attack; see :meth:`Driver.attack`."""

    agent: str | None
    kind: Kind
    repeats: int
    max_asr: float
    paths: Sequence[str | os.PathLike[str]]
    deadline: float | None
    seed: int
    probes: bool
    secrets: Sequence[str]


class Filters(TypedDict, total=False):
    """Which documents are meant; see :meth:`Driver.select`."""

    paths: Sequence[str | os.PathLike[str]]
    category: str | Sequence[str]
    tag: str | Sequence[str]
    severity: str | Sequence[str]
    protocol: str | Sequence[str]


def attack(document: str, **options: Unpack[AttackOptions]) -> Attack:
    """An attack on an agent in this process, for those who drive it themselves.

    ``document`` is the id of a threat document or the name of its file without the ending. The options are those of
    :meth:`Driver.attack`: ``agent``, ``kind``, ``repeats``, ``max_asr``, ``paths``, ``deadline``, ``seed``, ``probes``,
    ``secrets``.
    """
    return default_driver().attack(document, **options)


def select(*ids: str, **filters: Unpack[Filters]) -> list[Selected]:
    """The threat documents that fit; see :meth:`Driver.select`."""
    return default_driver().select(*ids, **filters)
