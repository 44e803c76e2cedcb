"""Signals."""

from kshim.turns import Signal


def test_a_signal_fires_once_and_tells_all_watchers() -> None:
    signal, told = Signal(), []
    signal.watch(lambda: told.append("first"))
    signal.watch(lambda: told.append("second"))
    assert not signal.fired
    signal.fire()
    signal.fire()
    assert signal.fired
    assert told == ["first", "second"]


def test_a_watcher_of_a_fired_signal_is_told_at_once() -> None:
    signal, told = Signal(), []
    signal.fire()
    signal.watch(lambda: told.append("late"))
    assert told == ["late"]
