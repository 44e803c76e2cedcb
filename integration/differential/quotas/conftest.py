"""Both servers, which the tests of this folder share: each has its own clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.differential.quotas.limited import Both, Limited
from integration.differential.stories.telling import both_servers

SETTINGS = {"num.partitions": "12"}
"""More partitions than a small controller_mutation_rate allows at once."""


@pytest.fixture(scope="package")
def both(class_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_servers(tmp_path_factory.mktemp("quotas"), SETTINGS) as (apache_kafka, kshim):
        yield Limited(apache_kafka), Limited(kshim)
