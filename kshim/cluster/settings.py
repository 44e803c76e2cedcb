"""The state of a cluster beside its topics: versions of features, client quotas, the next producer id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kshim.cluster.checks import Refusal
from kshim.cluster.client_quotas import (
    IP,
    Entity,
    QuotaChange,
    Quotas,
    changed,
    decode_quotas,
    encode_quotas,
    refuse_quotas,
    stored_key,
)
from kshim.cluster.features import LATEST, FeatureUpdate, fault_in_updates
from kshim.cluster.keys import CLIENT_QUOTAS, FEATURES, NEXT_PRODUCER_ID
from kshim.cluster.writer import Writer

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

_PRODUCER_ID_BLOCK = 1000  # ids taken by one durable write, as in Kafka


class Features:
    """The version in use of each feature."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.levels: Mapping[str, int] = LATEST  # 0 if a feature is not in use

    def read(self, metadata: Metadata) -> None:
        self.levels = LATEST | json.loads(metadata.get(FEATURES) or b"{}")

    def update(
        self,
        updates: Sequence[FeatureUpdate],
        controller_id: Callable[[], int],
        *,
        validate_only: bool = False,
    ) -> Deferred[str | None]:
        """Change the versions of features, all or none. Fires with the reason for a refusal, or None for
        success. Errbacks StorageError.
        """
        return self._writer.run(self._update, updates, controller_id, validate_only)

    async def _update(
        self, updates: Sequence[FeatureUpdate], controller_id: Callable[[], int], validate_only: bool
    ) -> str | None:
        fault = fault_in_updates(updates, self.levels, controller_id())
        levels = {**self.levels, **{update.feature: update.level for update in updates}}
        if fault is None and not validate_only and levels != self.levels:
            await self._writer.put({FEATURES: json.dumps(levels).encode()})
            self.levels = levels
        return fault


class QuotaTable:
    """The quotas of all entities that have quotas; empty in front of an upstream, which has its own."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[Quotas], object]] = []
        self._addresses = 0  # the number of addresses in by_entity
        self.by_entity: Quotas = {}  # exactly the durable ones

    @property
    def has_clients(self) -> bool:
        """True if an entity other than an address has quotas."""
        return len(self.by_entity) > self._addresses

    def watch(self, watcher: Callable[[Quotas], object]) -> None:
        """Call `watcher` with all quotas now, and after each change with the changed entities' quotas."""
        self._watchers.append(watcher)
        watcher(self.by_entity)

    def _show(self, after: Quotas) -> None:
        for entity, quotas in after.items():
            is_address = entity[0][0] == IP
            self._addresses -= is_address and entity in self.by_entity
            if quotas:
                self.by_entity[entity] = quotas
                self._addresses += is_address
            else:
                self.by_entity.pop(entity, None)
        for watcher in self._watchers:
            watcher(after)


class ClientQuotas(QuotaTable):
    """The stored quotas, which clients may alter."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def read(self, metadata: Metadata) -> None:
        self._show(dict(decode_quotas(value) for _, value in metadata.items(CLIENT_QUOTAS)))

    def alter(
        self, changes: Sequence[QuotaChange], *, validate_only: bool = False
    ) -> Deferred[list[Refusal | None]]:
        """Change the quotas of entities, each named once, in one durable write.

        Fires with a list: for each change a refusal, or None for success. A change is made whole or not at
        all. Errbacks StorageError; then nothing was changed.
        """
        return self._writer.run(self._alter, changes, validate_only)

    async def _alter(self, wanted: Sequence[QuotaChange], validate_only: bool) -> list[Refusal | None]:
        outcome = [refuse_quotas(change) for change in wanted]
        after: dict[Entity, dict[str, float]] = {}
        for change, refusal in zip(wanted, outcome, strict=True):
            before = self.by_entity.get(change.entity, {})
            now = changed(change, before)
            if refusal is None and now != before:
                after[change.entity] = now
        if after and not validate_only:
            stored = {
                CLIENT_QUOTAS + stored_key(entity): encode_quotas(entity, now)
                for entity, now in after.items()
            }
            await self._writer.put(stored)
            self._show(after)
        return outcome


class ProducerIds:
    """Gives out producer ids, each only once."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._next = self._end = 0

    def read(self, metadata: Metadata) -> None:
        self._next = self._end = int(metadata.get(NEXT_PRODUCER_ID) or 0)

    def new(self) -> Deferred[int]:
        """Fires with a producer id that was never given out before, even before a crash. Errbacks
        StorageError.
        """
        if self._next < self._end:
            return succeed(self._take())
        return self._writer.run(self._take_of_new_block)

    async def _take_of_new_block(self) -> int:
        if self._next == self._end:
            end = self._end + _PRODUCER_ID_BLOCK
            await self._writer.put({NEXT_PRODUCER_ID: b"%d" % end})
            self._end = end
        return self._take()

    def _take(self) -> int:
        self._next += 1
        return self._next - 1
