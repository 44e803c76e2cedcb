"""Both servers answer alike when administrators make, find and delete ACLs, at every version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.differential.acls.stories import steps, tell
from integration.differential.acls.world import World
from schemas.api_key import ApiKey
from schemas.registry import VERSIONS


@pytest.mark.parametrize("version", VERSIONS[ApiKey.CREATE_ACLS])
def test_both_answer_alike(
    version: int, worlds: tuple[World, World], compared: Callable[[int], None]
) -> None:
    apache_kafka, kshim = worlds
    ours = tell(kshim, version, None)
    theirs = tell(apache_kafka, version, ours)
    for request, our, their in zip(steps(), ours, theirs, strict=True):
        assert our == their, request
    compared(len(ours))
