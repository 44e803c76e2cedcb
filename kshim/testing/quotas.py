"""Quotas of a test: limits for chosen clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypedDict

from kshim.testing.brokers import Brokers, check
from kshim.testing.loops import in_thread
from schemas.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from schemas.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

__all__ = ["AsyncQuota", "Limits", "Quota", "alter_quotas", "check_limits", "forget_quotas", "new_entity"]

Entity = tuple[tuple[str, str | None], ...]


class Limits(TypedDict, total=False):
    """Limits, each per second. They are for clients, except the last one, which is for addresses."""

    producer_byte_rate: float
    consumer_byte_rate: float
    request_percentage: float
    """Time of the server's one thread, in percent."""
    controller_mutation_rate: float
    """Partitions created and deleted."""
    connection_creation_rate: float


class Quota:
    """A quota in force. As a context manager, it is removed at the end of the block."""

    def __init__(self, remove: Callable[[], object]) -> None:
        self._remove = remove

    def remove(self) -> None:
        """Remove the quota: it limits nobody any more. Raises Refused, TimeoutError."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.remove()


class AsyncQuota:
    """A `Quota` with coroutines."""

    def __init__(self, quota: Quota) -> None:
        self.sync = quota

    async def remove(self) -> None:
        """Remove the quota: it limits nobody any more. Raises Refused, TimeoutError."""
        await in_thread(self.sync.remove)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.remove()


def new_entity(user: str | None, client_id: str | None, ip: str | None) -> Entity:
    """Return the entity that a quota limits. An empty name is Kafka's default entity, whose limit each user,
    client id or address without a quota has for itself.
    """
    named = {"user": user, "client-id": client_id, "ip": ip}
    if not any(name is not None for name in named.values()):
        raise TypeError("say whom the quota limits: write user=…, client_id=… or ip=…")
    return tuple((kind, name or None) for kind, name in named.items() if name is not None)


def check_limits(limits: Mapping[str, object]) -> None:
    """Raise TypeError if there is no limit, or one is unknown or no number."""
    known = ", ".join(Limits.__annotations__)
    if not limits:
        raise TypeError(f"a quota needs a limit: write one of {known}")
    for name, value in limits.items():
        if name not in Limits.__annotations__:
            raise TypeError(f"{name} is no limit of a quota; the limits are {known}")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{name} has to be a number, not {type(value).__name__}: {value!r}")


def alter_quotas(brokers: Brokers, changes: Mapping[Entity, Mapping[str, object]]) -> None:
    """Set quotas; None removes one. Raises Again, Refused, OSError."""
    entries = tuple(
        RequestEntryData(
            entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
            ops=tuple(_operation(key, value) for key, value in quotas.items()),
        )
        for entity, quotas in changes.items()
    )
    request = AlterClientQuotasRequest(entries=entries)
    for done in brokers.ask_any(request, AlterClientQuotasResponse).entries:
        check("set a quota", done.error_code, done.error_message)


def forget_quotas(brokers: Brokers) -> None:
    """Remove all quotas. Raises Again, Refused, OSError."""
    request = DescribeClientQuotasRequest(components=())
    found = brokers.ask_any(request, DescribeClientQuotasResponse).entries or ()
    changes: dict[Entity, dict[str, object]] = {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): dict.fromkeys(
            value.key for value in entry.values
        )
        for entry in found
    }
    if changes:
        alter_quotas(brokers, changes)


def _operation(key: str, value: object) -> OpData:
    assert value is None or isinstance(value, int | float)
    return OpData(key=key, value=value or 0.0, remove=value is None)
