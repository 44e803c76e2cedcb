"""The pytest plugin: fixtures for tests of programs that use Kafka. Installing kshim activates it.

Under pytest-xdist each worker has a server of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kshim.testing.server import Kshim

STARTING = frozenset({"kshim", "new_kshim"})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to start the server while other fixtures are made, if any selected test needs it."""
    if any(map(_needs_server, session.items)) and not session.config.getoption("collectonly", default=False):
        from kshim.testing.processes import warm_up

        warm_up()


def _needs_server(item: pytest.Item) -> bool:
    """True if a test uses one of the fixtures below. A fixture of another module may have the same name."""
    used = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(used[name][-1].func.__module__ == __name__ for name in STARTING & used.keys())


@pytest.fixture(scope="session")
def kshim_properties() -> Mapping[str, str]:
    """The server's properties; a conftest.py may override this fixture."""
    return {}


@pytest.fixture(scope="session")
def kshim_brokers() -> int:
    """The server's number of brokers; a conftest.py may override this fixture."""
    return 1


@pytest.fixture(scope="session")
def kshim_tls() -> bool | Sequence[str]:
    """True if the server has a listener with TLS, or the names of clients that get certificates. A
    conftest.py may override this fixture.
    """
    return False


@pytest.fixture(scope="session")
def kshim(
    kshim_brokers: int, kshim_properties: Mapping[str, str], kshim_tls: bool | Sequence[str]
) -> Iterator[Kshim]:
    """One server for all tests. A test either uses unique names of topics and groups, as `kshim_topic` and
    `kshim_group` make, or resets the server, as `clean_kshim` does.
    """
    from kshim.testing.server import serving

    with serving(kshim_brokers, kshim_properties, tls=kshim_tls) as server:
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


@pytest.fixture
def new_kshim() -> Iterator[Callable[..., Kshim]]:
    """A function that starts servers for one test: `new_kshim(brokers=3)`.

    It takes the arguments of `serving`.
    """
    from kshim.testing.server import serving

    with ExitStack() as servers:
        yield lambda *args, **kwargs: servers.enter_context(serving(*args, **kwargs))
