"""Any ACLs lead both servers to the same decisions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.differential.acls.decisions import SEEDS, invent, look
from integration.differential.acls.world import World


@pytest.fixture(scope="module")
def invented(worlds: tuple[World, World]) -> None:
    """The ACLs of all seeds."""
    acls = [acl for seed in SEEDS for acl in invent(seed)]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda world: world.create_acls(acls), worlds))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_decide_the_same(
    seed: int, worlds: tuple[World, World], invented: None, compared: Callable[[int], None]
) -> None:
    theirs, ours = (look(world, seed) for world in worlds)
    assert ours == theirs, invent(seed)
    compared(len(ours))
