"""The quotas of a test: which clients it limits, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypedDict

from kshim.testing.brokers import Brokers, check
from schemas.api_key import ApiKey
from schemas.messages.alter_client_quotas import EntityData, OpData, RequestEntryData

__all__ = ["AsyncQuota", "Limits", "Quota", "forget_quotas"]

Entity = tuple[tuple[str, str | None], ...]


class Limits(TypedDict, total=False):
    """What may be limited, a second; all but the last for clients, the last for addresses."""

    producer_byte_rate: float
    consumer_byte_rate: float
    request_percentage: float
    """Of the server's one thread."""
    controller_mutation_rate: float
    """Partitions that are made or deleted."""
    connection_creation_rate: float


class Quota:
    """As a context manager it is removed at the end of the block."""

    def __init__(self, remove: Callable[[], object]) -> None:
        self._remove = remove

    def remove(self) -> None:
        """Limit nobody by it any more. Raises Refused, TimeoutError."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.remove()


class AsyncQuota:
    """The same with coroutines."""

    def __init__(self, quota: Quota) -> None:
        self.sync = quota

    async def remove(self) -> None:
        """Limit nobody by it any more. Raises Refused, TimeoutError."""
        await asyncio.to_thread(self.sync.remove)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.remove()


def new_entity(user: str | None, client_id: str | None, ip: str | None) -> Entity:
    """Whom a quota limits; an empty name is the default, which is each one's own."""
    named = {"user": user, "client-id": client_id, "ip": ip}
    return tuple((kind, name or None) for kind, name in named.items() if name is not None)


def alter_quotas(brokers: Brokers, changes: Mapping[Entity, Mapping[str, Any]]) -> None:
    """Set quotas; None removes one. Raises Again, Refused, OSError."""
    entries = tuple(
        RequestEntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            ops=tuple(_operation(key, value) for key, value in quotas.items()),
        )
        for entity, quotas in changes.items()
    )
    for done in brokers.ask_any(ApiKey.ALTER_CLIENT_QUOTAS, entries=entries).entries:
        check("set a quota", done.error_code, done.error_message)


def forget_quotas(brokers: Brokers) -> None:
    """Remove all quotas. Raises Again, Refused, OSError."""
    found: Iterable[Any] = brokers.ask_any(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=()).entries or ()
    changes = {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): dict.fromkeys(
            value.key for value in entry.values
        )
        for entry in found
    }
    if changes:
        alter_quotas(brokers, changes)


def _operation(key: str, value: float | None) -> OpData:
    return OpData(key=key, value=value or 0.0, remove=value is None)
