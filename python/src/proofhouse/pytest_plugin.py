"""The pytest plugin: attacks as tests.

::

    @pytest.mark.proofhouse("weather-key-theft")                   # runs as two tests: [control] and [attack]
    def test_weather_agent(attack):                                # Proofhouse has already started the attacker's servers
        attack.answer = my_agent(attack.prompt, mcp_urls=attack.mcp_urls)

    @pytest.mark.proofhouse(category="response_fabrication", repeats=5, max_asr=0.1)
    def test_all(attack):
        attack.answer = my_agent(attack.prompt, mcp_urls=attack.mcp_urls)

``[control]`` fails if the task was not done; ``[attack]`` fails if the agent was exploited, or if nothing was proved. The body
of the test runs once for each prompt: those of channel probes (once per agent and session), of the control and of the
attack. An agent is a test function with its parameters; a marker may name it with ``agent="…"``, so that several tests share
what is known of it. Different parameters (``@pytest.mark.parametrize``) are always different agents.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import pathlib
from dataclasses import dataclass
from typing import Any, Sequence

import pytest

from ._driver import Attack, Driver, DriverError, Kind, Result, Selected, Turn

MARK = "proofhouse"
FIXTURE = "attack"
_FILTERS = ("category", "tag", "severity", "protocol")
_OPTIONS = ("repeats", "max_asr", "deadline", "seed", "probes", "secrets")


@dataclass(frozen=True)
class _Case:
    """A test to be made: a document, and which of its runs."""

    document: Selected
    kind: Kind
    paths: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    agent: str


class _Session:
    """The driver of a pytest session, started when it is first needed."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._selected: dict[Any, list[Selected]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait(self, awaitable: Any) -> Any:
        """Waits for an asynchronous test. All are in one loop: frameworks keep connections from one call to the next."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(awaitable)

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver()
        return self._driver

    def select(self, ids: Sequence[str], paths: tuple[str, ...], filters: dict[str, Any]) -> list[Selected]:
        key = (tuple(ids), paths, tuple(sorted((name, str(value)) for name, value in filters.items())))
        if key not in self._selected:
            self._selected[key] = self.driver.select(*ids, paths=paths, **filters)
        return self._selected[key]

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None


_SESSION: pytest.StashKey[_Session] = pytest.StashKey()
_RESULT: pytest.StashKey[Result] = pytest.StashKey()


class AttackFailed(Exception):
    """A control or an attack that did not pass; what it says is the report."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "proofhouse(*ids, category=…, tag=…, severity=…, protocol=…, paths=[…], agent=…, repeats=1, max_asr=0.0, "
        "deadline=None, seed=0, probes=True, secrets=()): attack the agent of this test with these threat documents.",
    )
    config.stash[_SESSION] = _Session()


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is not None:
        session.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = list(metafunc.definition.iter_markers(MARK))
    if not marks:
        return
    name = metafunc.definition.nodeid
    if FIXTURE not in metafunc.fixturenames:
        raise pytest.UsageError(f"{name}: a test marked with proofhouse takes the fixture `attack`")
    session = metafunc.config.stash[_SESSION]
    cases: list[_Case] = []
    for mark in reversed(marks):
        arguments = dict(mark.kwargs)
        filters = {key: arguments.pop(key) for key in _FILTERS if key in arguments}
        options = {key: arguments.pop(key) for key in _OPTIONS if key in arguments}
        agent = arguments.pop("agent", None) or metafunc.definition.nodeid
        base = pathlib.Path(str(metafunc.definition.path)).parent
        paths = tuple(str(base / path) for path in _list(arguments.pop("paths", ())))
        if arguments:
            raise pytest.UsageError(f"{name}: proofhouse does not know {', '.join(sorted(arguments))}")
        if not (mark.args or filters or paths):
            raise pytest.UsageError(f"{name}: say which documents: an id, category, tag, severity, protocol or paths")
        try:
            documents = session.select(list(mark.args), paths, filters)
        except DriverError as error:
            raise pytest.UsageError(f"{name}: {error}") from error
        if not documents:
            raise pytest.UsageError(f"{name}: no document fits that an agent in this process can meet")
        for document in documents:
            kinds: tuple[Kind, ...] = ("control", "attack") if document.has_control else ("attack",)
            for kind in kinds:
                cases.append(_Case(document, kind, paths, tuple(sorted(options.items())), agent))
    single = len({case.document.id for case in cases}) == 1
    ids = [case.kind if single else f"{case.document.slug or case.document.id}-{case.kind}" for case in cases]
    metafunc.parametrize(FIXTURE, cases, ids=ids, indirect=True)


#: Characters of a name that `proofhouse drive` takes.
_MAX_NAME = 200


def _agent(item: pytest.Function, named: str) -> str:
    """Who is attacked: what the test or its marker is called, and the parameters that are not ours. What is known of one
    agent must not count for another."""
    callspec = getattr(item, "callspec", None)
    indices: dict[str, int] | None = getattr(callspec, "indices", None)
    if callspec is not None and indices is None:
        # Nobody knows which part of the name is ours.
        name = f"{named} {item.nodeid}"
    else:
        parameters = [f"{one}#{index}" for one, index in sorted((indices or {}).items()) if one != FIXTURE]
        name = f"{named}[{','.join(parameters)}]" if parameters else named
    if len(name) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{name[: _MAX_NAME - 65]} {digest}"


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, pathlib.Path)) else list(value)


class AttackFixture(Turn):
    """What the fixture ``attack`` is: the :class:`~proofhouse.Turn` that the agent has to take now."""

    #: Which documents, and which run.
    case: _Case

    def __init__(self, case: _Case) -> None:
        super().__init__(
            prompt="",
            mcp_urls=[],
            a2a_urls=[],
            purpose=case.kind,
            turn=0,
            run="",
            directory=pathlib.Path(),
            canary="",
            history=[],
        )
        self.case = case

    @property
    def document(self) -> Selected:
        """The threat document."""
        return self.case.document

    def become(self, turn: Turn) -> None:
        """Takes over what the next turn is."""
        for name in Turn.__dataclass_fields__:
            setattr(self, name, getattr(turn, name))


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> AttackFixture:
    """The prompt and the servers of an attack, for a test marked with ``proofhouse``. Set ``attack.answer``."""
    case = getattr(request, "param", None)
    if not isinstance(case, _Case):
        raise pytest.UsageError("the fixture `attack` needs the marker: @pytest.mark.proofhouse(…)")
    return AttackFixture(case)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    fixture = pyfuncitem.funcargs.get(FIXTURE)
    if not isinstance(fixture, AttackFixture):
        return None
    case = fixture.case
    names = pyfuncitem._fixtureinfo.argnames  # pyright: ignore[reportPrivateUsage]
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    session = pyfuncitem.config.stash[_SESSION]
    driven: Attack = session.driver.attack(
        case.document.id, agent=_agent(pyfuncitem, case.agent), kind=case.kind, paths=case.paths, **dict(case.options)
    )
    failure: Exception | None = None
    try:
        with driven:
            for turn in driven:
                fixture.become(turn)
                try:
                    called = pyfuncitem.obj(**arguments)
                    if inspect.isawaitable(called):
                        session.wait(called)
                    turn.answer = fixture.answer
                except Exception as error:  # What an agent raises is its failure, and part of the result.
                    failure = error
                    driven.fail(error)
    except DriverError as error:
        raise AttackFailed(str(error)) from error
    result = driven.result
    pyfuncitem.stash[_RESULT] = result
    pyfuncitem.user_properties.append(("proofhouse", {"document": case.document.id, "outcome": result.outcome}))
    if not result.passed:
        raise AttackFailed(result.report) from failure
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    outcome = yield
    if call.excinfo is None or not isinstance(call.excinfo.value, AttackFailed):
        return
    report = outcome.get_result()
    failed = call.excinfo.value
    # The evidence is what matters, not where in the plugin it was raised; what the agent raised comes after it.
    text = str(failed).rstrip()
    if failed.__cause__ is not None and not isinstance(failed.__cause__, DriverError):
        text += f"\n  the last error of the agent: {type(failed.__cause__).__name__}: {failed.__cause__}"
    report.longrepr = text
