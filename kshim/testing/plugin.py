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
    """Begin to start the server while other fixtures are made, if a test that will run needs it."""
    if any(map(_needs_server, session.items)) and not session.config.getoption("collectonly", default=False):
        from kshim.testing.processes import warm_up

        warm_up()


def _needs_server(item: pytest.Item) -> bool:
    """Whether a test uses one of the fixtures below; other fixtures may have their names."""
    used = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(used[name][-1].func.__module__ == __name__ for name in STARTING & used.keys())


@pytest.fixture(scope="session")
def kshim_properties() -> Mapping[str, str]:
    """The properties of `kshim`, for a conftest.py to override."""
    return {}


@pytest.fixture(scope="session")
def kshim_brokers() -> int:
    """The number of brokers of `kshim`, for a conftest.py to override."""
    return 1


@pytest.fixture(scope="session")
def kshim_tls() -> bool | Sequence[str]:
    """Whether `kshim` has a listener with TLS, for a conftest.py to override."""
    return False


@pytest.fixture(scope="session")
def kshim(
    kshim_brokers: int, kshim_properties: Mapping[str, str], kshim_tls: bool | Sequence[str]
) -> Iterator[Kshim]:
    """One server for all tests; each test needs its own names for topics and groups, as
    `kshim_topic` and `kshim_group` give, or resets the server, as `clean_kshim` does.
    """
    from kshim.testing.server import serving

    with serving(kshim_brokers, kshim_properties, tls=kshim_tls) as server:
        yield server


@pytest.fixture
def clean_kshim(kshim: Kshim) -> Kshim:
    """The same server without the topics and groups of earlier tests."""
    kshim.reset()
    return kshim


@pytest.fixture
def kshim_topic(kshim: Kshim) -> Iterator[str]:
    """A new topic that only this test knows, deleted after it. `kshim.topic(partitions=3)` makes others."""
    name = kshim.topic()
    yield name
    kshim.delete_topics(name)


@pytest.fixture
def kshim_group(kshim: Kshim) -> str:
    """A group id that only this test knows."""
    return kshim.group()


@pytest.fixture
def new_kshim() -> Iterator[Callable[..., Kshim]]:
    """Starts servers for one test: `new_kshim(brokers=3)`. For the arguments see `serving`."""
    from kshim.testing.server import serving

    with ExitStack() as servers:
        yield lambda *args, **kwargs: servers.enter_context(serving(*args, **kwargs))
