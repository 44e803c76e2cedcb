"""Apache Kafka and kshim with an authorizer, started once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.differential.acls.decisions import USERS as DECIDED
from integration.differential.acls.matrix import rows
from integration.differential.acls.world import ADMIN, World, settings
from integration.differential.stories.sasl_settings import both_with_sasl
from integration.differential.stories.telling import Servers

Worlds = tuple[World, World]
"""Apache Kafka and kshim."""


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Servers]:
    users = [ADMIN, *(row.user for row in rows()), *DECIDED]
    with both_with_sasl(tmp_path_factory.mktemp("acls"), settings(users)) as both:
        yield both


@pytest.fixture(scope="session")
def worlds(guarded: Servers) -> Iterator[Worlds]:
    apache_kafka, kshim = (World(server.host, server.port) for server in guarded)
    for world in (apache_kafka, kshim):
        world.wait_loaded()
    yield apache_kafka, kshim
    apache_kafka.close()
    kshim.close()
