"""The times at which the log looks for old records."""

from twisted.internet.task import Clock

from kshim.storage.cleaning import Cleaning
from kshim.storage.interfaces import StorageError
from kshim.storage.memory import MemoryLog


class CountingLog(MemoryLog):
    def __init__(self) -> None:
        super().__init__()
        self.cleaned_at: list[int] = []

    def clean(self, now_ms: int) -> None:
        self.cleaned_at.append(now_ms)
        if now_ms == 12_000:
            raise StorageError("EIO")


def test_at_the_start_and_then_again_and_again_until_it_is_stopped() -> None:
    clock, log = Clock(), CountingLog()
    clock.advance(10)
    cleaning = Cleaning(log, clock, interval_ms=1000)
    cleaning.start()
    clock.pump([1, 1, 1, 0.5])  # a failure does not stop it
    cleaning.stop()
    clock.advance(100)
    assert log.cleaned_at == [10_000, 11_000, 12_000, 13_000]
    assert clock.getDelayedCalls() == []


def test_once_stopped_it_never_starts() -> None:
    log = CountingLog()
    cleaning = Cleaning(log, Clock(), 1000)
    cleaning.stop()
    cleaning.start()
    assert log.cleaned_at == []
