"""Both servers, started for the stories of one module with its SETTINGS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.differential.stories.telling import Servers, both_servers


@pytest.fixture(scope="module")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, class_path: str
) -> Iterator[Servers]:
    with both_servers(tmp_path_factory.mktemp("servers"), request.module.SETTINGS) as both:
        yield both
