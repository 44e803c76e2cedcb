"""The shards that all kshim processes in front of one upstream share: see `GroupShards`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults, succeed
from twisted.python.failure import Failure

from kshim import __version__
from kshim.callers.once import Once
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.loading import Leader
from kshim.storage.clock import Timer, after
from kshim.storage.interfaces import StorageError
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.fellows import Fellow, fault_in_reach
from kshim.upstream.interfaces import Addresses, SeenShards, Upstream
from kshim.upstream.shards.attempt import World
from kshim.upstream.shards.batch_limit import BatchLimit
from kshim.upstream.shards.before import look, taken_over
from kshim.upstream.shards.failovers import Failovers
from kshim.upstream.shards.membership import Assigned, Membership, Ours
from kshim.upstream.shards.mirrored import MirroredOffsets
from kshim.upstream.shards.partitions import Partitions
from kshim.upstream.shards.permissions import check_permissions
from kshim.upstream.shards.reach import Reach
from kshim.upstream.shards.roster import Roster
from kshim.upstream.shards.said import Said
from kshim.upstream.shards.shard import Shard
from kshim.upstream.shards.shard_journal import ShardJournal
from kshim.upstream.shards.standing import count_led, seen_shards, why_not_ready
from kshim.upstream.shards.telling import Telling
from kshim.upstream.shards.tenure import Marker
from kshim.upstream.shards.topic import Wanted, find_or_make, max_message_bytes
from schemas.internal_topics.shard_claim import ShardClaim

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

POLLS_A_LEASE = 3
READ_AT_ONCE = 8
HAND_OVER_S = 0.15
"""How long a live process may take to release a shard, before another one claims it."""
REACH_S = 1.0
"""The pause between two checks while another process's address cannot be reached."""
FIRST_S = 15.0
"""How long the start waits until the first assigned shards are led."""


class SharedShards:
    """Implements `kshim.upstream.interfaces.GroupShards`."""

    def __init__(
        self,
        config: Config,
        reactor: Reactor,
        upstream: Upstream,
        coordinators: UpstreamCoordinators,
        mirrored: MirroredOffsets | None,
        node_id: int,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """coordinators: the upstream's. mirrored: copies commits to the upstream; None if that is switched
        off. node_id: this process's id in the runtime. now_ms: a clock that never goes back, and does not
        stop while the machine sleeps; None for the machine's.
        """
        self._config = config
        self._topic = config.upstream_groups_topic
        self._lease_ms = config.upstream_groups_lease_ms
        self._poll_s = self._lease_ms / 1000 / POLLS_A_LEASE
        self._now_ms = now_ms or _now_ms
        self._reactor = reactor
        self._upstream = upstream
        self._coordinators = coordinators
        self._node_id = node_id
        self._roster = Roster(reactor)
        self._roster.names = config.broker_names
        self._reach = Reach(0, self._poll_s)
        self._log = Partitions(reactor, self._topic, upstream, lambda shard: self._reach.heard(shard))
        self._limit = BatchLimit()
        self._once = Once(reactor)
        self._mirrored = mirrored
        self._shards: dict[int, Shard] = {}
        self._journal = ShardJournal(self._shards, mirrored)
        self._groups: GroupRuntime | None = None
        self._epochs = count(1)
        self._had_no_members = False
        """True if the processes' group had no members before this one joined."""
        self._telling = Telling(reactor, self._topic, self._roster)
        self._failovers = Failovers(reactor, self._topic, self._now_led)
        self._membership: Membership | None = None
        self._poll_later: Timer | None = None
        self._first: Deferred[None] | None = None
        self._is_stopped = False

    # ---- what the service asks

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partitions(self) -> int:
        return len(self._shards)

    @property
    def record_bytes(self) -> int:
        return self._limit.record_bytes

    @property
    def group_id(self) -> str:
        return self._config.upstream_groups_group_id

    @property
    def journal(self) -> ShardJournal:
        return self._journal

    def prepare(self) -> Deferred[None]:
        """Find the topic, or create it. Errbacks StorageError, LinkError."""
        return Deferred.fromCoroutine(self._prepare())

    async def _prepare(self) -> None:
        config = self._config
        replicas = config.upstream_groups_topic_replication_factor
        wanted = Wanted(self._topic, config.upstream_groups_topic_partitions, replicas)
        partitions = await find_or_make(self._upstream.ask, self._reactor, wanted)
        await check_permissions(self._upstream, self._coordinators, self._topic, self.group_id)
        self._limit = BatchLimit(await max_message_bytes(self._upstream.ask, self._topic))
        await self._look_before()
        self._make_shards(partitions)

    def _make_shards(self, partitions: int) -> None:
        world = World(
            log=self._log,
            clock=self._reactor,
            now_ms=self._now_ms,
            wall_ms=lambda: int(self._reactor.seconds() * 1000),
            new_claim=self._new_claim,
            led=self._led,
            lost=self._lost,
            gave_up=lambda _, why: self._failovers.no_longer_led(why),
            ended=self._ended,
            once=self._once,
            limit=self._limit,
            reading=DeferredSemaphore(READ_AT_ONCE),
        )
        self._shards.update((index, Shard(index, world)) for index in range(partitions))
        self._reach = Reach(partitions, self._poll_s)

    def start(
        self,
        groups: GroupRuntime,
        addresses: Callable[[], Addresses],
        ports: Callable[[], Mapping[int, int]] = dict,
        http: Callable[[], Endpoint | None] = lambda: None,
    ) -> Deferred[None]:
        """Join the other processes; fires when the first assigned shards are led. See `GroupShards.start`."""
        self._groups = groups
        self._roster.addresses, self._roster.ports, self._roster.http = addresses, ports, http
        if self._mirrored is not None:
            self._mirrored.shard_for, self._mirrored.proven = groups.shard_for, self.proven
        return Deferred.fromCoroutine(self._start(groups))

    async def _start(self, groups: GroupRuntime) -> None:
        await self._check_reach()
        await self._log.learn()
        first = self._first = Deferred()
        self._membership = Membership(
            self._reactor,
            self._upstream,
            self.group_id,
            self._config.upstream_groups_session_timeout_ms,
            self._ours,
            self._assign,
        )
        if self._had_no_members:
            # Kafka delays the first assignment by group.initial.rebalance.delay.ms. kshim need not wait for
            # it: the shards' logs decide which process leads.
            self._assign(Assigned(frozenset(self._shards), {}, (self._roster.here(),)))
        self._membership.start()
        self._poll()
        enough = self._reactor.callLater(FIRST_S, self._is_ready)
        try:
            await first
        finally:
            if enough.active():
                enough.cancel()

    async def _check_reach(self) -> None:
        """Raise StorageError if clients of one process cannot reach another. Retry for a while: a process
        that ended without leaving the group remains a member until its session ends.
        """
        until_s = self._reactor.seconds() + self._config.upstream_groups_session_timeout_ms / 1000 + REACH_S
        while (fault := fault_in_reach(self.fellows())) and not self._is_stopped:
            if self._reactor.seconds() >= until_s:
                raise StorageError(fault)
            await after(self._reactor, REACH_S)
            await self._look_before()

    async def _look_before(self) -> None:
        found = await look(self._coordinators, self.group_id, self._topic)
        self._had_no_members, self._roster.before = found

    def _ours(self) -> Ours:
        settings = {**self._config.shared_settings, "version of kshim": __version__}
        silent = sorted(self._reach.doubtful())
        here = self._roster.here()
        said = Said(here.addresses, self.partitions, settings, here.ports, silent, here.names, here.http)
        return Ours(said, [shard.index for shard in self._shards.values() if shard.is_led])

    def hand_over(self) -> Deferred[bool]:
        """See `GroupShards.hand_over`."""
        return Deferred.fromCoroutine(self._hand_over())

    async def _hand_over(self) -> bool:
        if self._mirrored is not None:
            await self._mirrored.stop()
        await self._release_all()
        here, membership = self._roster.here(), self._membership
        if membership is not None:
            await membership.stop()
        others = await taken_over(self._reactor, self._coordinators, self.group_id, self._topic, here)
        if others is None:
            return False
        self._roster.has_left = True
        self._roster.take(Assigned(frozenset(), others.leaders, others.everybody))
        return bool(self.successors())

    def successors(self) -> Sequence[Fellow]:
        """See `GroupShards.successors`."""
        return [each for each in self.fellows() if each.ports] if self._roster.has_left else ()

    def stop(self) -> Deferred[None]:
        """Release all shards, and leave the group. The runtime is stopped already."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self._is_stopped = True
        self._is_ready()
        self._failovers.stop()
        if self._poll_later is not None:
            self._poll_later.cancel()
        await self._release_all()
        if self._membership is not None:
            await self._membership.stop()
        self._log.stop()

    async def _release_all(self) -> None:
        released = gatherResults([shard.release() for shard in self._shards.values()])
        call = self._reactor.callLater(2.0, released.cancel)
        try:
            await released
        except Exception as error:
            logger.debug("not all shards could be released: %s", error)
        if call.active():
            call.cancel()

    def may_answer(self, shard: int) -> bool:
        """True if certainly no other process leads the shard."""
        return self._shards[shard].may_answer()

    def proven(self, shard: int) -> Deferred[bool]:
        """Fires with True if at that moment certainly no other process leads the shard."""
        of_shard = self._shards[shard]
        if of_shard.may_answer():
            return succeed(True)
        return of_shard.prove_leadership().addCallbacks(lambda _: of_shard.may_answer(), _not_led)

    def leader(self, shard: int) -> Fellow | None:
        """Return the process that has to lead the shard; None if this one is alone."""
        return self._roster.leader(shard)

    def here(self) -> Fellow:
        """See `GroupShards.here`."""
        return self._roster.here()

    @property
    def has_met(self) -> bool:
        """See `GroupShards.has_met`."""
        return self._roster.has_met

    def tell(self) -> None:
        """See `GroupShards.tell`."""
        if self._membership is not None and self.fellows():
            self._membership.tell()

    def fellows(self) -> tuple[Fellow, ...]:
        """Return all processes that share the shards, with this one; empty if it is alone."""
        return self._roster.fellows()

    def gone(self) -> tuple[Fellow, ...]:
        """Return the processes that shared the shards until lately."""
        return self._roster.gone()

    def why_not_ready(self) -> str:
        """See `GroupShards.why_not_ready`."""
        return why_not_ready(self._shards, self._roster, self._topic, self.group_id)

    def seen(self) -> SeenShards:
        """See `GroupShards.seen`."""
        return seen_shards(self._shards, self._roster, self._failovers)

    def _now_led(self) -> str:
        return f"{count_led(self._shards)} of the {len(self._roster.ours)} that it is to lead"

    # ---- transactions

    def has_open_transactions(self, shard: int) -> bool:
        """See `GroupShards.has_open_transactions`."""
        return self._journal.has_open_transactions(shard)

    def is_open(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """See `GroupShards.is_open`."""
        return self._journal.is_open(shard, producer_id, producer_epoch)

    def last_marker(self, shard: int, producer_id: int) -> int:
        """See `GroupShards.last_marker`."""
        return self._journal.last_marker(shard, producer_id)

    def _ended(self, shard: int, marker: Marker) -> None:
        assert self._groups is not None
        ends = partial(self._shards[shard].ends, marker)
        if self._groups.apply_marker(shard, marker.marker, ends):
            self._tidy(shard)

    def _tidy(self, shard: int) -> None:
        """Remove pending offsets that no longer matter, behind the records that replace them."""
        assert self._groups is not None
        self._groups.end_turn()
        self._shards[shard].tidy()

    # ---- leadership

    def _new_claim(self) -> ShardClaim:
        at = next(iter(self._roster.addresses().values()))
        return ShardClaim(claim_id=uuid4(), host=at.host, port=at.port, lease_ms=self._lease_ms)

    def _assign(self, assigned: Assigned) -> None:
        """Release the shards assigned to other processes, and take over those assigned to this one."""
        if fault := fault_in_reach(assigned.everybody):
            if self._first is not None:  # the process is starting: it ends now, and the others go on
                first, self._first = self._first, None
                first.errback(StorageError(fault))
                return
            logger.log(self._once.level("reach"), "%s", fault)
        before = self._roster.take(assigned)
        logger.info(
            "will lead %d of %d shards of %s; %d kshim share them",
            *(len(assigned.ours), self.partitions, self._topic, len(assigned.everybody)),
        )
        for index, shard in self._shards.items():
            if index not in assigned.ours:
                shard.release()
        for index in sorted(assigned.ours):
            had = None if before is None else before.leaders.get(index)
            # A process that has just joined does not know which process led before.
            is_alive = had in assigned.everybody if had is not None else len(assigned.everybody) > 1
            self._reactor.callLater(HAND_OVER_S if is_alive else 0, self._want, index, assigned)
        self._is_ready_if_led()

    def _want(self, index: int, assigned: Assigned) -> None:
        if assigned is self._roster.assigned and not self._is_stopped:
            self._shards[index].want()

    def _led(self, shard: int) -> Deferred[None]:
        assert self._groups is not None
        self._failovers.led()
        loading = self._groups.load(shard, Leader(self._node_id, next(self._epochs)))
        loading.addCallbacks(lambda _: self._loaded(shard), lambda _: None)  # a failure is logged
        loading.addCallback(lambda _: self._is_ready_if_led())
        if self._mirrored is not None:
            self._mirrored.watch()
        return loading

    def _loaded(self, shard: int) -> None:
        """Write the offsets of ended transactions that the former leader did not write any more."""
        assert self._groups is not None
        if self._groups.keep_offsets(shard, self._shards[shard].transactions.to_keep()):
            self._tidy(shard)

    def _lost(self, shard: int) -> None:
        assert self._groups is not None
        self._groups.unload(shard)
        if self._mirrored is not None:
            self._mirrored.lost(shard)

    def _poll(self) -> None:
        for shard in self._shards.values():
            shard.poll()
        if self._reach.poll():
            for index, shard in self._shards.items():
                if not shard.is_led:
                    self._log.end(index)
        self._telling.look(self._reach, self._membership)
        self._poll_later = self._reactor.callLater(self._poll_s, self._poll)

    def _is_ready_if_led(self) -> None:
        if self._roster.assigned is not None and all(self._shards[each].is_led for each in self._roster.ours):
            self._is_ready()

    def _is_ready(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first.callback(None)


def _not_led(failure: Failure) -> bool:
    failure.trap(StorageError)
    return False


def _now_ms() -> int:
    """The machine's time; where the system offers such a clock, it also counts while the machine sleeps."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
