"""The pytest plugin: fixtures for tests of what speaks to Kafka. It is there once kshim is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kshim.testing.server import Kshim


@pytest.fixture(scope="session")
def kshim() -> Iterator[Kshim]:
    """One server with one broker for all tests; give topics and groups names of their own."""
    from kshim.testing.server import serving

    with serving() as server:
        yield server


@pytest.fixture
def new_kshim() -> Iterator[Callable[..., Kshim]]:
    """Starts servers for one test alone: `new_kshim(brokers=3)`. For the arguments see `serving`."""
    from kshim.testing.server import serving

    with ExitStack() as servers:
        yield lambda *args, **kwargs: servers.enter_context(serving(*args, **kwargs))
