"""The shards of a runtime: those that are led, those that load, and those that will be loaded again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from kshim.coordination.decision import Decision
from kshim.coordination.leads import Lead
from kshim.coordination.loading import Leader, Loadable, Loader, Loading
from kshim.storage.clock import Call
from kshim.storage.interfaces import Journal, StorageDamaged, StorageError

logger = logging.getLogger(__name__)

START_MS = 20
"""How long `start` may load, in ms; the shards that are left are loaded while the others are served."""
RELOAD_S = 1
"""The pause before a shard whose journal could not be read is loaded again, in seconds."""


class Servable(Loadable, Protocol):
    """The part of a coordinator that begins and ends to serve a shard."""

    def finish_load(self, shard: int, now_ms: int) -> Decision:
        """Serve `shard` from now on."""

    def unload(self, shard: int, now_ms: int) -> Decision:
        """Give up `shard`; the decision answers the requests that it has parked."""


class Owner(Protocol):
    """The runtime whose shards these are."""

    def now_ms(self) -> int: ...

    def carry_out(self, lead: Lead, decision: Decision) -> None:
        """Carry out a decision of a shard that is led."""

    def lost(self, lead: Lead, decision: Decision) -> None:
        """Answer what a shard had promised that is led no more. decision: of its coordinator, which gives it
        up.
        """

    def set_alarm(self) -> None:
        """Look anew when work is due, because shards have come or gone."""


class LedShards:
    """Leads, loads and gives up shards. Each is led by one broker, or by none."""

    def __init__(self, owner: Owner, coordinator: Servable, journal: Journal, loader: Loader) -> None:
        self._owner = owner
        self._coordinator = coordinator
        self._journal = journal
        self._loader = loader
        self.leads: dict[int, Lead] = {}
        self.loading: dict[int, Loading] = {}
        self.reloads: dict[int, Call] = {}
        """By shard: the scheduled call that loads it again, after its journal could not be read."""
        self._leader_epochs: dict[int, int] = {}
        self.in_flight: Counter[int] = Counter()
        """By shard: how many appends are under way, whether or not the shard is still led."""
        self.prepare: Callable[[int], Deferred[None] | None] = lambda _: None
        """Called when the journal of a shard is replayed. The shard is served once the Deferred fires; None
        stands for at once.
        """

    def start(self, leaders: Mapping[int, Leader] | None) -> None:
        """Load the shards that have a leader: for START_MS before this returns, the rest later. Raises
        StorageError if a shard cannot be read before this returns.

        leaders: by shard; None makes node 0 the leader of all.
        """
        if leaders is None:
            leaders = dict.fromkeys(range(self._coordinator.partitions), Leader())
        seconds = self._loader.clock.seconds
        until_s = seconds() + START_MS / 1000

        def is_long_enough() -> bool:
            return seconds() >= until_s

        for shard, leader in leaders.items():
            self._leader_epochs[shard] = leader.leader_epoch
            loading = self.loading[shard] = Loading(shard, leader, self._coordinator, self._journal)
            if is_long_enough() or not self._replay(loading, is_long_enough):
                loading.served.addErrback(lambda _: None)  # it is logged
                self._loader.add_later(loading, partial(self.go_on_loading, loading))

    def load(self, shard: int, leader: Leader) -> Deferred[None]:
        """See `Runtime.load`."""
        now = self.leads.get(shard) or self.loading.get(shard)
        known = self._leader_epochs.get(shard, -1)
        if leader.leader_epoch < known or (now is not None and leader.leader_epoch == known):
            return succeed(None)
        self._leader_epochs[shard] = leader.leader_epoch
        if now is not None and now.leader.node_id == leader.node_id:
            now.leader = leader
            return succeed(None)
        self._give_up(shard)
        return self._begin_load(shard, leader).served

    def unload(self, shard: int, leader_epoch: int | None) -> None:
        """See `Runtime.unload`."""
        if leader_epoch is None or leader_epoch > self._leader_epochs.get(shard, -1):
            self._give_up(shard)

    def give_up_all(self) -> None:
        """Give up every shard."""
        for shard in {*self.leads, *self.loading, *self.reloads}:
            self._give_up(shard)

    def load_anew(self, lead: Lead) -> None:
        """Load a shard again that its leader has lost."""
        self._give_up(lead.shard)
        self._begin_load(lead.shard, lead.leader).served.addErrback(lambda _: None)

    def want(self, shard: int) -> None:
        """If `shard` is loading, note that a client waits for it."""
        if (loading := self.loading.get(shard)) is not None:
            self._loader.want(loading)

    def landed(self, shard: int) -> None:
        """Note that an append has settled; loading the shard again may have waited for it."""
        self.in_flight[shard] -= 1
        if (loading := self.loading.get(shard)) is not None:
            self._load_if_alone(loading)

    # ---- loading

    def _begin_load(self, shard: int, leader: Leader) -> Loading:
        loading = self.loading[shard] = Loading(shard, leader, self._coordinator, self._journal)
        self._load_if_alone(loading)
        return loading

    def _load_if_alone(self, loading: Loading) -> None:
        """Load a shard, unless appends of a former leader are still under way."""
        if not self.in_flight[loading.shard]:
            self._loader.add(loading, partial(self.go_on_loading, loading))

    def go_on_loading(self, loading: Loading, is_long_enough: Callable[[], bool]) -> bool:
        """Load until `is_long_enough()`; return True if that ended: the journal is replayed, or it failed."""
        try:
            has_ended = self._replay(loading, is_long_enough)
        except StorageError as error:
            has_ended = True
            shard = loading.shard
            logger.error("%s-%d: cannot be loaded: %s", self._coordinator.topic, shard, error)
            if not isinstance(error, StorageDamaged):
                later = self._loader.clock.callLater
                self.reloads[shard] = later(RELOAD_S, self._load_again, shard, loading.leader)
            loading.served.errback(error)
        self._owner.set_alarm()
        return has_ended

    def _load_again(self, shard: int, leader: Leader) -> None:
        del self.reloads[shard]
        self._begin_load(shard, leader).served.addErrback(lambda _: None)

    def _replay(self, loading: Loading, is_long_enough: Callable[[], bool]) -> bool:
        """Replay a part of the journal; return True if that was the last. Then the shard is served, or is
        being prepared.

        Raises StorageError; then this process does not lead the shard, which is better than to serve half of
        it.
        """
        shard = loading.shard
        try:
            if not loading.replay(is_long_enough):
                return False
        except StorageError:
            del self.loading[shard]
            self._coordinator.unload(shard, self._owner.now_ms())
            raise
        loading.prepared = self.prepare(shard)
        if loading.prepared is None:
            self._serve(loading)
        else:
            loading.prepared.addErrback(_log_unless_given_up)
            loading.prepared.addCallback(lambda _: self._serve_prepared(loading))
        return True

    def _serve(self, loading: Loading) -> None:
        shard, now_ms = loading.shard, self._owner.now_ms()
        del self.loading[shard]
        lead = self.leads[shard] = Lead(shard, loading.leader)
        for decide in (self._coordinator.finish_load, *loading.decisions):
            self._owner.carry_out(lead, decide(shard, now_ms))
        loading.served.callback(None)

    def _serve_prepared(self, loading: Loading) -> None:
        """Serve a shard that is prepared, unless it was given up meanwhile."""
        if self.loading.get(loading.shard) is loading:
            self._serve(loading)
            self._owner.set_alarm()

    def _give_up(self, shard: int) -> None:
        """Stop leading or loading a shard; do nothing for any other."""
        lead, loading = self.leads.pop(shard, None), self.loading.pop(shard, None)
        if (again := self.reloads.pop(shard, None)) is not None:
            again.cancel()
        if loading is not None:
            self._loader.remove(loading)
            if loading.prepared is not None:
                loading.prepared.cancel()
            self._coordinator.unload(shard, self._owner.now_ms())
            loading.served.callback(None)
        if lead is not None:
            lead.gathering = None
            self._owner.lost(lead, self._coordinator.unload(shard, self._owner.now_ms()))


def _log_unless_given_up(failure: Failure) -> None:
    if failure.check(CancelledError) is None:
        logger.error("internal error: %s", failure.getTraceback())
