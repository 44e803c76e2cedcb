"""The pytest plugin: fixtures for tests of programs that use Kafka. Installing kshim activates it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kshim.testing.server import Kshim


@pytest.fixture(scope="session")
def kshim() -> Iterator[Kshim]:
    """One server with one broker for all tests; each test needs its own names for topics and groups."""
    from kshim.testing.server import serving

    with serving() as server:
        yield server


@pytest.fixture
def new_kshim() -> Iterator[Callable[..., Kshim]]:
    """Starts servers for one test: `new_kshim(brokers=3)`. For the arguments see `serving`."""
    from kshim.testing.server import serving

    with ExitStack() as servers:
        yield lambda *args, **kwargs: servers.enter_context(serving(*args, **kwargs))
