"""Writes the markers that end a transaction: a control batch in the log of each of its partitions.

A marker is written again until it is durable. A partition that can never get its marker (its topic is gone)
does not hold up the others. A transaction may have tens of thousands of partitions, so markers are written a
few at a time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from twisted.internet.defer import Deferred

from kshim.coordination.transactions.requests import sorted_by_topic
from kshim.coordination.transactions.transaction import TopicPartition
from kshim.storage.clock import Clock
from kshim.turns.promise import run
from schemas.error_code import ErrorCode
from schemas.records.end_txn_marker import EndTxnMarker

RETRY_MS = 1_000
"""The pause before a marker that could not be written is tried again, in ms."""
MOST_NAMED = 5
"""How many partitions a line of the log names."""
LOG_PAUSE_S = 1
"""How often partitions without a marker are looked at for a line of the log, in seconds: it is written when
no more partitions are to come.
"""
MARKERS_IN_TURN = 100
"""How many markers of all transactions are written in one turn of the reactor; they take about 7 ms."""
MARKERS_AT_ONCE = 20
"""How many markers of one transaction are written before the next transaction has its turn."""
MOST_UNDER_WAY = 500
"""How many markers of one transaction may be written and not durable yet."""

ENDED_WITHOUT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic is gone",
    ErrorCode.INVALID_PRODUCER_EPOCH: "a newer producer has written there",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written there",
}
"""Errors after which a partition gets no marker, with the reason: the transaction is over in that partition,
or another coordinator ends it.
"""

logger = logging.getLogger(__name__)


class WriteMarker(Protocol):
    """Writes a marker in one partition, as `producing.markers.write_marker` does."""

    def __call__(
        self, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int
    ) -> Awaitable[ErrorCode]: ...


class Markers:
    """The markers of one transaction."""

    def __init__(
        self,
        transactional_id: str,
        partitions: Collection[TopicPartition],
        write: Callable[[str, int], Awaitable[ErrorCode]],
        is_wanted: Callable[[], bool],
        turns: MarkerTurns,
    ) -> None:
        """write: writes the marker in one partition; returns as `WriteMarker` does. is_wanted: returns True
        while this coordinator still has to write the markers.
        """
        self._transactional_id = transactional_id
        self._write = write
        self._is_wanted = is_wanted
        self._turns = turns
        self._unwritten = _each(sorted_by_topic(partitions))
        self._again: deque[TopicPartition] = deque()
        """Partitions whose marker could not be written, and whose pause is over."""
        self._left = len(partitions)
        """How many partitions still need their marker."""
        self._not_begun = len(partitions)
        self._under_way = 0
        self._unmarked: dict[ErrorCode, list[TopicPartition]] = {}
        """Partitions that got no marker and are not logged yet, by error."""
        self.is_waiting = False
        """True while `turns` has this transaction in its queue."""
        self.done: Deferred[None] = Deferred()
        """Fires when each partition has its marker or needs none; never if the markers are no longer wanted.
        """
        if not partitions:
            self.done.callback(None)

    @property
    def may_go_on(self) -> bool:
        """True if a marker can be written now."""
        return bool(self._not_begun or self._again) and self._under_way < MOST_UNDER_WAY and self._is_wanted()

    def write_next(self) -> None:
        """Write one more marker."""
        if self._again:
            partition = self._again.popleft()
        else:
            partition = next(self._unwritten)
            self._not_begun -= 1
        self._under_way += 1
        run(self._write_in(partition))

    async def _write_in(self, partition: TopicPartition) -> None:
        try:
            error = await self._write(*partition)
        except Exception:  # a bug must not leave the transaction open for ever: try again
            logger.exception("transactional id %s: no marker in %s-%d", self._transactional_id, *partition)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        self._under_way -= 1
        if error is not ErrorCode.NONE:
            self._warn_later(error, partition)
        if error is ErrorCode.NONE or error in ENDED_WITHOUT:
            self._left -= 1
        else:
            self._turns.clock.callLater(RETRY_MS / 1000, self._try_again, partition)
        if not self._left:
            self.done.callback(None)
        else:
            self._turns.add(self)

    def _try_again(self, partition: TopicPartition) -> None:
        """Queue a marker that could not be written, after its pause."""
        self._again.append(partition)
        self._turns.add(self)

    def _warn_later(self, error: ErrorCode, partition: TopicPartition) -> None:
        """Note a partition for a line that names several: thousands may fail."""
        if not self._unmarked:
            self._turns.clock.callLater(0, self._warn)
        self._unmarked.setdefault(error, []).append(partition)

    def _warn(self) -> None:
        """Log one line for each error, once every marker has been tried."""
        if self._not_begun and self._is_wanted():
            self._turns.clock.callLater(LOG_PAUSE_S, self._warn)
            return
        unmarked, self._unmarked = self._unmarked, {}
        for error, partitions in unmarked.items():
            named = [f"{topic}-{index}" for topic, index in partitions[:MOST_NAMED]]
            more = len(partitions) - len(named)
            logger.warning(
                "transactional id %s: no marker in %s%s (%s), %s",
                self._transactional_id,
                ", ".join(named),
                f" and {more} more" if more else "",
                error.name,
                ENDED_WITHOUT.get(error, "trying again"),
            )


class MarkerTurns:
    """Writes the markers of all transactions, a few in each turn of the reactor.

    Transactions take turns, so a small one does not wait for a large one.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: deque[Markers] = deque()
        self._left = MARKERS_IN_TURN
        """How many markers may still be written in this turn."""
        self._next_turn: object = None

    def add(self, markers: Markers) -> None:
        """Queue the markers of a transaction; they are written now if this turn has room left."""
        if not markers.is_waiting and markers.may_go_on:
            markers.is_waiting = True
            self._waiting.append(markers)
            self._write()

    def _write(self) -> None:
        while self._left and self._waiting:
            markers = self._waiting.popleft()
            for _ in range(MARKERS_AT_ONCE):
                if not (self._left and markers.may_go_on):
                    break
                self._left -= 1
                markers.write_next()
            markers.is_waiting = markers.may_go_on
            if markers.is_waiting:
                self._waiting.append(markers)
        if self._next_turn is None and self._left < MARKERS_IN_TURN:
            self._next_turn = self.clock.callLater(0, self._begin_turn)

    def _begin_turn(self) -> None:
        self._next_turn = None
        self._left = MARKERS_IN_TURN
        self._write()


def _each(topics: Mapping[str, Iterable[int]]) -> Iterator[TopicPartition]:
    for topic, indexes in topics.items():
        for index in indexes:
            yield topic, index
