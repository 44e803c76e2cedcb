"""The pytest plugin: fixtures for tests of programs that use Kafka. Installing kshim activates it.

Under pytest-xdist each worker has a server of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kshim.testing.asynchronous import AsyncKshim
    from kshim.testing.initial import GivenRecords, GivenTopics
    from kshim.testing.server import Kshim

STARTING = frozenset({"kshim", "new_kshim", "new_class_kshim", "new_module_kshim", "new_session_kshim"})


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kshim", "Kafka servers for tests")
    group.addoption(
        "--kshim-bootstrap",
        metavar="HOST:PORT",
        help="Run the tests against this Kafka cluster, and skip those that need what only kshim can do.",
    )
    group.addoption(
        "--kshim-may-reset",
        action="store_true",
        help="With --kshim-bootstrap: reset() and clean_kshim may delete all its topics and groups.",
    )
    group.addoption(
        "--kshim-brokers", type=int, metavar="N", help="Number of brokers of the fixture kshim's server."
    )
    group.addoption(
        "--kshim-property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A property of the fixture kshim's server; may be given several times.",
    )
    parser.addini("kshim_brokers", "Number of brokers of the fixture kshim's server.", default="1")
    parser.addini(
        "kshim_properties", "Properties of the fixture kshim's server, a KEY=VALUE a line.", "linelist"
    )
    parser.addini(
        "kshim_topics", "Topics that it begins with, a TOPIC or TOPIC:PARTITIONS a line.", "linelist"
    )
    parser.addini("kshim_tls", "True if it has a listener with TLS.", "bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Put the given cluster into the environment, where tests with unittest look for it, too."""
    if bootstrap := config.getoption("kshim_bootstrap"):
        os.environ["KSHIM_TEST_BOOTSTRAP"] = bootstrap
    if config.getoption("kshim_may_reset"):
        os.environ["KSHIM_TEST_MAY_RESET"] = "1"


def pytest_report_header() -> str | None:
    if bootstrap := _given():
        return f"kshim: the tests run against the cluster at {bootstrap}"
    return None


def _given() -> str:
    return os.environ.get("KSHIM_TEST_BOOTSTRAP", "")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to start the server while other fixtures are made, if any selected test needs it."""
    if _given() or session.config.getoption("collectonly", default=False):
        return
    if any(map(_needs_server, session.items)):
        from kshim.testing.processes import warm_up

        warm_up()


def _needs_server(item: pytest.Item) -> bool:
    """True if a test uses one of the fixtures below. A fixture of another module may have the same name."""
    used = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(used[name][-1].func.__module__ == __name__ for name in STARTING & used.keys())


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise pytest.UsageError(f"{option}: {text!r} is no KEY=VALUE, such as num.partitions=3")
    return key.strip(), value.strip()


def _partitions(text: str) -> tuple[str, int | None]:
    topic, colon, count = text.partition(":")
    if colon and not (count.isdecimal() and int(count)):
        raise pytest.UsageError(f"kshim_topics: {text!r} is no TOPIC or TOPIC:PARTITIONS, such as orders:3")
    return topic.strip(), int(count) if colon else None


# ---- what the server of all tests is started with


@pytest.fixture(scope="session")
def kshim_properties(pytestconfig: pytest.Config) -> Mapping[str, str]:
    """The server's properties, by default those of the ini file and of --kshim-property; a conftest.py may
    override this fixture.
    """
    pairs = [_pair(line, "kshim_properties") for line in pytestconfig.getini("kshim_properties")]
    pairs += [_pair(text, "--kshim-property") for text in pytestconfig.getoption("kshim_property")]
    return dict(pairs)


@pytest.fixture(scope="session")
def kshim_brokers(pytestconfig: pytest.Config) -> int:
    """The server's number of brokers, by default that of the ini file or of --kshim-brokers; a conftest.py
    may override this fixture.
    """
    asked: int | None = pytestconfig.getoption("kshim_brokers")
    text = str(pytestconfig.getini("kshim_brokers")) if asked is None else str(asked)
    if not text.isdecimal() or not int(text):
        raise pytest.UsageError(f"kshim_brokers: {text!r} is no number of brokers; write 1 or more")
    return int(text)


@pytest.fixture(scope="session")
def kshim_tls(pytestconfig: pytest.Config) -> bool | Sequence[str]:
    """True if the server has a listener with TLS, or the names of clients that get certificates. A
    conftest.py may override this fixture.
    """
    return bool(pytestconfig.getini("kshim_tls"))


@pytest.fixture(scope="session")
def kshim_topics(pytestconfig: pytest.Config) -> GivenTopics:
    """The topics that the server begins with, and has again after `reset`: partitions by topic, as in
    {"orders": 3}. A conftest.py may override this fixture.
    """
    return dict(map(_partitions, pytestconfig.getini("kshim_topics")))


@pytest.fixture(scope="session")
def kshim_records() -> GivenRecords:
    """The records that the server begins with, and has again after `reset`, by topic, as in {"orders":
    ["first"]}. A conftest.py may override this fixture.
    """
    return {}


# ---- servers


@pytest.fixture(scope="session")
def kshim(
    kshim_brokers: int,
    kshim_properties: Mapping[str, str],
    kshim_tls: bool | Sequence[str],
    kshim_topics: GivenTopics,
    kshim_records: GivenRecords,
) -> Iterator[Kshim]:
    """One server for all tests. A test either uses unique names of topics and groups, as `kshim_topic` and
    `kshim_group` make, or resets the server, as `clean_kshim` does.
    """
    from kshim.testing.given import server_for_tests

    with server_for_tests(kshim_brokers, kshim_properties, kshim_tls, kshim_topics, kshim_records) as server:
        yield server


@pytest.fixture
def clean_kshim(kshim: Kshim) -> Kshim:
    """The server of `kshim`, reset: without the topics and groups of earlier tests."""
    kshim.reset()
    return kshim


@pytest.fixture
def kshim_topic(kshim: Kshim) -> Iterator[str]:
    """A new topic with a unique name, deleted after the test. `kshim.topic(partitions=3)` makes others."""
    name = kshim.topic()
    yield name
    kshim.delete_topics(name)


@pytest.fixture
def kshim_group(kshim: Kshim) -> str:
    """A group id that no other test uses."""
    return kshim.group()


@contextmanager
def _starting() -> Iterator[Callable[..., Kshim]]:
    """A function that starts servers, which end with the block."""
    from kshim.testing.server import serving

    def start(*args: object, **kwargs: object) -> Kshim:
        if bootstrap := _given():
            pytest.skip(f"new_kshim: starts a server of its own, and the tests run against {bootstrap}")
        return servers.enter_context(serving(*args, **kwargs))  # type: ignore[arg-type]

    with ExitStack() as servers:
        yield start


@pytest.fixture
def new_kshim() -> Iterator[Callable[..., Kshim]]:
    """A function that starts servers for one test: `new_kshim(brokers=3)`.

    It takes the arguments of `serving`.
    """
    with _starting() as start:
        yield start


@pytest.fixture(scope="class")
def new_class_kshim() -> Iterator[Callable[..., Kshim]]:
    """Like `new_kshim`, but the servers last until the end of the class."""
    with _starting() as start:
        yield start


@pytest.fixture(scope="module")
def new_module_kshim() -> Iterator[Callable[..., Kshim]]:
    """Like `new_kshim`, but the servers last until the end of the module."""
    with _starting() as start:
        yield start


@pytest.fixture(scope="session")
def new_session_kshim() -> Iterator[Callable[..., Kshim]]:
    """Like `new_kshim`, but the servers last until the end of the test run."""
    with _starting() as start:
        yield start


# ---- the same for coroutines; no fixture is one, so they go with pytest-asyncio and anyio alike


@pytest.fixture(scope="session")
def async_kshim(kshim: Kshim) -> AsyncKshim:
    """The server of `kshim`, with coroutines."""
    from kshim.testing.asynchronous import AsyncKshim

    return AsyncKshim(kshim)


@pytest.fixture
def clean_async_kshim(clean_kshim: Kshim, async_kshim: AsyncKshim) -> AsyncKshim:
    """The server of `clean_kshim`, with coroutines."""
    return async_kshim


@pytest.fixture
def new_async_kshim(
    new_kshim: Callable[..., Kshim],
) -> Callable[..., Coroutine[object, object, AsyncKshim]]:
    """A coroutine that starts servers for one test: `await new_async_kshim(brokers=3)`."""
    from kshim.testing.asynchronous import AsyncKshim
    from kshim.testing.loops import in_thread

    async def start(*args: object, **kwargs: object) -> AsyncKshim:
        return AsyncKshim(await in_thread(new_kshim, *args, **kwargs))

    return start
