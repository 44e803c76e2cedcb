"""Both servers, started once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.differential.tls.listening import (
    APACHE_KAFKA,
    KSHIM,
    Certificates,
    Listening,
    new_certificates,
    serving,
)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return new_certificates(tmp_path_factory.mktemp("tls") / "certificates")


@pytest.fixture(scope="session")
def both(
    class_path: str, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[dict[str, Listening]]:
    """Both servers, by kind."""
    directory = tmp_path_factory.mktemp("servers")
    with (
        serving(APACHE_KAFKA, directory, certificates) as kafka,
        serving(KSHIM, directory, certificates) as kshim,
    ):
        yield {APACHE_KAFKA: kafka, KSHIM: kshim}
