"""One attempt to lead a shard: carries out its `Takeover`."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred, DeferredSemaphore

from kshim.callers.once import Once
from kshim.storage.clock import Clock, after
from kshim.storage.interfaces import StorageDamaged
from kshim.upstream.shards.answers import SHORT_OF, Answer, Meaning
from kshim.upstream.shards.batch_limit import BatchLimit
from kshim.upstream.shards.partitions import FETCH_BYTES, Fetched
from kshim.upstream.shards.stored import encode_batch, read_batches
from kshim.upstream.shards.takeover import Append, GiveUp, Lead, Read, State, Takeover, Wait
from kshim.upstream.shards.tenure import Entry, Marker, Outgoing
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim

logger = logging.getLogger(__name__)

AGAIN_S = 0.1
"""The pause before the same request is sent again."""
LOST_S = (0.05, 0.5)
"""The least and longest pause before a shard is claimed again that another process has claimed first."""
DAMAGED_S = 60.0
"""The pause before a damaged log is read again."""
REREADS = 3
"""How often a damaged batch is fetched again before it is skipped."""
REFUSED_S = 5.0
"""The pause after a claim that the upstream has refused."""


class Log(Protocol):
    """The partitions of the journal; see `Partitions`."""

    def append(self, partition: int, batch: bytes | memoryview) -> Deferred[Answer]: ...
    def end(self, partition: int) -> Deferred[int | None]: ...
    def fetch(
        self, partition: int, offset: int, max_bytes: int = FETCH_BYTES
    ) -> Deferred[Fetched | None]: ...


@dataclass(frozen=True, slots=True)
class World:
    """The parts and settings that all shards of a process share."""

    log: Log
    clock: Clock
    """The clock for pauses."""
    now_ms: Callable[[], int]
    """Returns the time of a clock that never goes back, and does not stop while the machine sleeps."""
    wall_ms: Callable[[], int]
    """Returns the timestamp for batches. The upstream replaces it by its own time."""
    new_claim: Callable[[], ShardClaim]
    led: Callable[[int], Deferred[None]]
    """Called with a shard when its leadership begins. Fires when the records that were read are loaded."""
    lost: Callable[[int], None]
    """Called with a shard when its leadership ends, before its appends fail."""
    gave_up: Callable[[int, str], None]
    """Called with a shard and the reason when its leadership ends without a release."""
    ended: Callable[[int, Marker], None]
    """Called with a shard and a transaction's end from its log. The callee calls `Shard.ends` with it when
    the shard is loaded and all earlier decisions are appended.
    """
    once: Once
    """Keeps log lines from being repeated, for each shard and attempt."""
    limit: BatchLimit
    reading: DeferredSemaphore
    """Limits how many shards are read to their ends at a time."""


class Led(NamedTuple):
    """The result of an attempt: the shard is led."""

    lead: Lead
    claim: ShardClaim
    claimed_ms: int
    fetched: list[bytes]
    """The batches in the shard's log."""


class CalledOff(Exception):
    """The shard is no longer wanted."""


class Attempt:
    """Tries until the shard is led, or until it is called off."""

    def __init__(self, index: int, world: World) -> None:
        self._index = index
        self._world = world
        self._is_called_off = False
        self._fetched: list[bytes] = []
        self._rereads = 0
        self._claimed_ms = 0

    def call_off(self) -> None:
        """Make `run` raise CalledOff at its next step."""
        self._is_called_off = True
        self._fetched = []

    async def run(self, after_s: float) -> Led:
        """Return when the shard is led. Raises CalledOff."""
        if after_s:
            await self._pause(after_s)
        while True:
            claim = self._world.new_claim()
            takeover = Takeover(claim)
            try:
                await self._read_and_claim(takeover)
            except StorageDamaged as error:
                logger.error(
                    "shard %d is not led; kshim tries again in %g s: %s", self._index, DAMAGED_S, error
                )
                self._fetched = []
                await self._pause(DAMAGED_S)
                continue
            match takeover.wants():
                case Wait(wait_ms):
                    await self._pause(wait_ms / 1000)
                    takeover.has_waited()
                case GiveUp():
                    await self._pause(random.uniform(*LOST_S))
            match takeover.wants():
                case Lead() as lead:
                    return Led(lead, claim, self._claimed_ms, self._fetched)
            self._fetched = []

    async def _read_and_claim(self, takeover: Takeover) -> None:
        """Do what the takeover wants, until it only has to wait. Raises CalledOff, StorageDamaged."""
        await self._world.reading.acquire()
        try:
            self._check()
            self._fetched, self._rereads = [], 0
            while takeover.state is State.READING:
                await self._read(takeover)
        finally:
            self._world.reading.release()
        # Claims do not wait for one another: one request to a broker carries those of many shards.
        while True:
            match takeover.wants():
                case Read():
                    await self._read(takeover)
                case Append(term, claim):
                    await self._append_claim(takeover, Outgoing(term, 0, (entry(claim),)))
                case _:
                    return

    async def _read(self, takeover: Takeover) -> None:
        wanted = takeover.wants()
        assert isinstance(wanted, Read), wanted
        offset = wanted.offset
        fetched = await self._world.log.fetch(self._index, offset)
        self._check()
        if fetched is None:
            await self._pause(AGAIN_S)
            return
        found = list(read_batches(fetched.data, offset))
        if self._rereads < REREADS and any(each.is_damaged for each in found):
            self._rereads += 1
            await self._pause(AGAIN_S)
            return
        if found:
            self._fetched.append(fetched.data)
        takeover.was_read(found, fetched.high_watermark)
        log_finding(self._world.once, self._index, takeover.finding)

    async def _append_claim(self, takeover: Takeover, batch: Outgoing) -> None:
        self._claimed_ms = self._world.now_ms()
        answer = await self._world.log.append(self._index, encode_batch(batch, self._world.wall_ms()))
        self._check()
        log_shortage(self._world.once, answer)
        takeover.was_answered(answer)
        if answer.meaning is Meaning.REFUSED:
            level = self._world.once.level(("claim", answer.error_code))
            logger.log(level, "the upstream does not allow kshim to lead shards: %s", answer.error_code.name)
            await self._pause(REFUSED_S)
        elif answer.meaning is Meaning.AGAIN:
            await self._pause(AGAIN_S)

    async def _pause(self, for_s: float) -> None:
        await after(self._world.clock, for_s)
        self._check()

    def _check(self) -> None:
        if self._is_called_off:
            raise CalledOff


def log_finding(once: Once, shard: int, finding: str) -> None:
    """Log what is wrong with a shard's log, if anything is."""
    if finding:
        logger.log(once.level(("finding", shard)), "shard %d: %s", shard, finding)


def log_shortage(once: Once, answer: Answer) -> None:
    """Log that the upstream lacks disks or replicas, if that is its answer to an append."""
    if answer.error_code in SHORT_OF:
        level = once.level(("short", answer.error_code))
        logger.log(level, "the upstream appends nothing to the groups' topic: %s", answer.error_code.name)


def entry(claim: ShardClaim) -> Entry:
    """Return the record of a claim."""
    return KEY, encode_claim(claim)
