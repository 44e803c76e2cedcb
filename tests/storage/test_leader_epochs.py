"""Every backend finds the end of each leader epoch."""

import pytest

from kshim.storage.interfaces import EpochBoundary, Store
from tests.storage.batches import batch_of
from tests.storage.reactor import Reactor

BIG = b"x" * 40_000  # two of them exceed one chunk


class TestLeaderEpochs:
    @pytest.fixture(autouse=True)
    def _log(self, store: Store, reactor: Reactor) -> None:
        self.log = store.log
        self.reactor = reactor

    def append(self, *epochs: int, value: bytes = b"value") -> None:
        """Append one record for each epoch, all before any is durable, so that they share chunks."""
        queued = [
            self.log.append(1, batch_of(10, value=value), leader_epoch=epoch, now_ms=0) for epoch in epochs
        ]
        for appended in queued:
            self.reactor.result(appended)

    def test_an_empty_log_has_no_epochs(self) -> None:
        assert self.log.epoch_boundary(1, 0) == EpochBoundary(-1, -1, 0)

    @pytest.mark.parametrize("value", [b"small", BIG])
    @pytest.mark.parametrize(
        ("epoch", "boundary"),
        [
            (0, EpochBoundary(-1, 1, 0)),
            (1, EpochBoundary(1, 3, 2)),
            (2, EpochBoundary(1, 3, 2)),
            (3, EpochBoundary(3, 4, 3)),
            (4, EpochBoundary(4, -1, 6)),
            (9, EpochBoundary(4, -1, 6)),
        ],
    )
    def test_the_end_of_an_epoch_is_where_the_next_begins(
        self, value: bytes, epoch: int, boundary: EpochBoundary
    ) -> None:
        self.append(1, 1, 3, 4, 4, 4, value=value)
        assert self.log.epoch_boundary(1, epoch) == boundary

    def test_every_boundary_in_a_long_log(self) -> None:
        for epoch in range(40):
            self.append(*[epoch] * (1 + epoch % 3))
        ends = [self.log.epoch_boundary(1, epoch).offset for epoch in range(40)]
        counts = [1 + epoch % 3 for epoch in range(40)]
        assert ends == [sum(counts[: epoch + 1]) for epoch in range(40)]

    def test_no_epoch_ends_below_the_start_of_the_log(self) -> None:
        self.append(1, 1, 2, 2, 3)
        self.reactor.result(self.log.delete_records(1, 3))
        assert self.log.epoch_boundary(1, 0).offset == 3
        assert self.log.epoch_boundary(1, 2) == EpochBoundary(2, 3, 4)
        self.reactor.result(self.log.delete_records(1, 5))
        assert self.log.epoch_boundary(1, 2).offset == 5

    def test_watchers_hear_of_a_log_that_starts_later_and_of_what_wakes_them(self) -> None:
        self.append(1, 1)
        seen: list[int] = []
        self.log.watch(1, lambda: seen.append(self.log.offsets(1).log_start_offset))
        self.reactor.result(self.log.delete_records(1, 1))
        assert seen == [1]
        self.log.wake(1)
        self.log.wake(2)
        assert seen == [1, 1]
