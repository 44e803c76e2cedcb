"""Rules for configs. The needed right depends on the type of the resource: a topic, a group or a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeVar

from kshim.access.asker import ERRORS, Asker, Resource
from kshim.access.rules import Perform, Q, R, joined
from kshim.answering.alter import cost_us
from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from kshim.cluster.config_changes import (
    ConfigChange,
    ConfigOperation,
    Operation,
    ResourceType,
    refuse_requests,
)
from kshim.turns.promise import settled
from kshim.turns.slices import in_slices
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages import alter_configs as plain
from schemas.messages import incremental_alter_configs as incremental
from schemas.messages.describe_configs import DescribeConfigsRequest

Alter = TypeVar("Alter", plain.AlterConfigsRequest, incremental.IncrementalAlterConfigsRequest)
CLIENT_METRICS = 16
_KINDS: Final[Mapping[int, AclResource]] = {
    ResourceType.TOPIC: AclResource.TOPIC,
    ResourceType.BROKER: AclResource.CLUSTER,
    ResourceType.LOGGER: AclResource.CLUSTER,
    CLIENT_METRICS: AclResource.CLUSTER,
    ResourceType.GROUP: AclResource.GROUP,
}
"""The type of the ACLs, by the type of the resource with configs."""
MESSAGES: Final = {
    AclResource.TOPIC: "Topic authorization failed.",
    AclResource.GROUP: "Group authorization failed.",
    AclResource.CLUSTER: "Cluster authorization failed.",
}


class Entry(Protocol):
    """An entry of a request: it names a resource."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


def describe_configs(
    asker: Asker, request: DescribeConfigsRequest, perform: Perform[DescribeConfigsRequest, R]
) -> R | Awaitable[R]:
    """Describe the configs that the caller may see.

    A request with an unknown type fails as a whole anyway.
    """
    if any(each.resource_type not in _KINDS for each in request.resources):
        return perform(request)
    return _each(asker, request, request.resources, perform, AclOperation.DESCRIBE_CONFIGS, _resource)


async def alter_configs(asker: Asker, request: Alter, perform: Perform[Alter, R]) -> R:
    """Alter the configs that the caller may alter.

    An invalid entry gets the error about that, not about rights.
    """
    changes = await in_slices(
        asker.broker.rounds, asker.context.turn, request.resources, partial(_change, asker), cost_us
    )
    refusals = refuse_requests(changes, asker.broker.node_id)
    refused = {
        change.resource for change, refusal in zip(changes, refusals, strict=True) if refusal is not None
    }

    def resource_of(entry: Entry) -> Resource | None:
        return None if (entry.resource_type, entry.resource_name) in refused else _resource(entry)

    return await _each(asker, request, request.resources, perform, AclOperation.ALTER_CONFIGS, resource_of)


def _change(
    asker: Asker, entry: plain.AlterConfigsResource | incremental.AlterConfigsResource
) -> ConfigChange:
    """An entry of AlterConfigs or IncrementalAlterConfigs as a ConfigChange."""
    return ConfigChange(
        entry.resource_type,
        entry.resource_name,
        tuple(
            ConfigOperation(each.name, getattr(each, "config_operation", Operation.SET), each.value)
            for each in entry.configs
        ),
        replaces=asker.api_key is ApiKey.ALTER_CONFIGS,
    )


async def _each(
    asker: Asker,
    request: Q,
    entries: Sequence[Entry],
    perform: Perform[Q, R],
    operation: AclOperation,
    resource_of: Callable[[Entry], Resource | None],
) -> R:
    """Refuse the entries that the caller may not use for the operation, and perform the rest.

    resource_of: returns the resource of an entry; None for an entry that needs no right.
    """

    kept, denied = await asker.divide(operation, entries, resource_of)
    if not denied:
        return await settled(perform(request))
    response = await settled(perform(replace(request, **{"resources": tuple(kept)})))
    others: dict[int, list[Entry]] = {}
    for entry in denied:
        others.setdefault(entry.resource_type, []).append(entry)
    for kind, some in others.items():
        response = joined(asker, response, some, *_error(kind, operation))
    return response


def _error(kind: int, operation: AclOperation) -> tuple[ErrorCode, str | None]:
    """The error and message for refused entries of one type.

    When a broker or a logger is altered, there is no message.
    """
    resource = _KINDS.get(kind, AclResource.CLUSTER)
    is_altered_broker = resource is AclResource.CLUSTER and operation == AclOperation.ALTER_CONFIGS
    return ERRORS[resource], None if is_altered_broker else MESSAGES[resource]


def _resource(entry: Entry) -> Resource | None:
    """The resource that an entry needs a right to; None if its type is unknown."""
    kind = _KINDS.get(entry.resource_type)
    if kind is None:
        return None
    return kind, CLUSTER_NAME if kind is AclResource.CLUSTER else entry.resource_name
