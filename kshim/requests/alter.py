"""What AlterConfigs and IncrementalAlterConfigs share: changes go to the cluster, outcomes become results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred

from kshim.cluster import Refusal
from kshim.cluster.config_changes import ConfigChange
from kshim.requests.broker import Broker
from kshim.requests.later import if_not_stored
from schemas.error_code import ErrorCode

T = TypeVar("T")

NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The configs could not be stored.")


def alter(
    broker: Broker, changes: Sequence[ConfigChange], *, validate_only: bool
) -> Deferred[list[Refusal | None]]:
    """Change each resource whole, or refuse it. Fires when the changes are durable and in force."""
    outcome = broker.cluster.alter_configs(changes, broker.node_id, validate_only=validate_only)
    return outcome.addErrback(if_not_stored(lambda: [NOT_STORED] * len(changes)))


def results(
    resource_response: Callable[..., T], changes: Iterable[ConfigChange], outcome: Iterable[Refusal | None]
) -> tuple[T, ...]:
    """The result of each resource, as `resource_response` of one of the two APIs."""
    return tuple(
        resource_response(
            error_code=refusal.error_code if refusal else ErrorCode.NONE,
            error_message=refusal.message if refusal else None,
            resource_type=change.resource_type,
            resource_name=change.resource_name,
        )
        for change, refusal in zip(changes, outcome, strict=True)
    )
