"""Objects that a long collection found alive are not looked at again."""

import gc
from collections.abc import Iterator

import pytest

from kshim.cli import collector


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize(("long_s", "is_frozen"), [(0.0, True), (1000.0, False)])
def test_survivors_of_a_long_collection_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, long_s: float, is_frozen: bool
) -> None:
    monkeypatch.setattr(collector, "LONG_S", long_s)
    collector.defer()
    collector.begin()
    kept = [[] for _ in range(1000)]
    before = gc.get_freeze_count()
    gc.collect(1)
    assert gc.get_freeze_count() <= before
    gc.collect()
    assert (gc.get_freeze_count() >= before + len(kept)) == is_frozen
