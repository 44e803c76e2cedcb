"""Parts of AlterConfigs and IncrementalAlterConfigs: changes go to the cluster, outcomes become results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster import Refusal
from kshim.cluster.config_changes import TWICE, ConfigChange
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import Slices, each_piece
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped

T = TypeVar("T")

RESOURCES_AT_ONCE, RESOURCE_US, CONFIG_US = 100, 3, 1
COUNTED_AT_ONCE = 5_000
NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The configs could not be stored.")


class HasConfigs(Protocol):
    @property
    def configs(self) -> Sequence[object]: ...


def cost_us(resource: HasConfigs) -> int:
    """The most that reading one resource of a request may cost, in µs."""
    return RESOURCE_US + CONFIG_US * len(resource.configs)


async def alter(
    broker: ClusterView, context: RequestContext, changes: Sequence[ConfigChange], *, validate_only: bool
) -> Iterable[Refusal | None]:
    """Change each resource whole, or refuse it. Fires when the changes are durable and in force."""

    async def change(some: Sequence[ConfigChange]) -> Iterable[Refusal | None]:
        try:
            return await broker.cluster.alter_configs(some, broker.node_id, validate_only=validate_only)
        except StorageError:
            return [NOT_STORED] * len(some)

    if len(changes) <= RESOURCES_AT_ONCE:
        return await change(changes)
    context.turn.is_alone = True
    return await _alter_in_pieces(Slices(broker.rounds, context.turn), changes, change)


async def _alter_in_pieces(
    slices: Slices,
    changes: Sequence[ConfigChange],
    change: Callable[[Sequence[ConfigChange]], Awaitable[Iterable[Refusal | None]]],
) -> list[Refusal | None]:
    """Call `change` for a few changes at a time, without those of a resource that has several."""
    times: Counter[tuple[int, str]] = Counter()

    def count(some: Sequence[ConfigChange]) -> tuple[()]:
        times.update(each.resource for each in some)
        return ()

    def single(some: Sequence[ConfigChange]) -> list[ConfigChange]:
        return [each for each in some if times[each.resource] == 1]

    def with_the_others(some: Sequence[ConfigChange]) -> list[Refusal | None]:
        return [TWICE if times[each.resource] > 1 else next(left) for each in some]

    await each_piece(slices, changes, count, COUNTED_AT_ONCE)
    singles = await each_piece(slices, changes, single, COUNTED_AT_ONCE)
    left = iter(await each_piece(slices, singles, change, RESOURCES_AT_ONCE))
    return await each_piece(slices, changes, with_the_others, COUNTED_AT_ONCE)


def results(
    resource_response: Callable[..., T], changes: Iterable[ConfigChange], outcome: Iterable[Refusal | None]
) -> Sequence[T]:
    """The result of each resource, as `resource_response` of one of the two APIs."""

    def result(item: tuple[ConfigChange, Refusal | None]) -> T:
        change, refusal = item
        return resource_response(
            error_code=refusal.error_code if refusal else ErrorCode.NONE,
            error_message=refusal.message if refusal else None,
            resource_type=change.resource_type,
            resource_name=change.resource_name,
        )

    return Mapped(result, tuple(zip(changes, outcome, strict=True)))
