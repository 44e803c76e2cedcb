"""Decides changes of configs: Kafka's refusals in Kafka's order, or the new configs.

Pure. In Kafka the broker that is asked refuses what it can check by itself, and the controller refuses the
rest (KIP-226, KIP-339); this module does both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from kshim.cluster.broker_configs import ALL_BROKERS, BrokerConfigs, parse_node_id
from kshim.cluster.checks import Refusal
from kshim.cluster.cordoned import fault_in_cordoned
from kshim.cluster.group_configs import fault_in_group_configs, fault_in_intervals
from kshim.cluster.names import fault_in_name
from kshim.cluster.topic_configs import fault_in_configs
from kshim.cluster.topics import Topic
from kshim.configs import java
from kshim.configs.brokers import BROKER_CONFIGS, DYNAMIC_CONFIGS, Update
from kshim.configs.definition import ConfigType, Definition
from kshim.configs.listeners import LISTENER_PREFIX
from kshim.configs.topics import TOPIC_CONFIGS
from schemas.error_code import ErrorCode

TWICE = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


class ResourceType(IntEnum):
    """The kinds of resources with configs. Kafka also has client metrics."""

    TOPIC = 2
    BROKER = 4
    LOGGER = 8  # of a broker. Its level is not stored; the broker that is asked changes it
    GROUP = 32


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs on one config (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_RESOURCE_TYPES, _OPERATIONS = frozenset(map(int, ResourceType)), frozenset(map(int, Operation))


class ConfigOperation(NamedTuple):
    """One operation on one config."""

    name: str
    operation: int
    """An Operation, or any other number that a client sent."""
    value: str | None


class ConfigChange(NamedTuple):
    """The changes of one resource."""

    resource_type: int
    resource_name: str
    operations: tuple[ConfigOperation, ...]
    replaces: bool = False
    """True if configs that are not named go back to their defaults (AlterConfigs)."""

    @property
    def resource(self) -> tuple[int, str]:
        return self.resource_type, self.resource_name


class Altered(NamedTuple):
    """The result of changes of configs."""

    outcome: list[Refusal | None]
    """A refusal, or None for success, for each change."""
    topics: list[Topic]
    """The changed topics in their new state."""
    brokers: dict[str, dict[str, str]]
    """The new dynamic configs of each changed broker, by node id as text or ALL_BROKERS."""
    groups: dict[str, dict[str, str]]
    """The new configs of each changed group, by its id."""


def altered(
    changes: Sequence[ConfigChange],
    node_id: int,
    topics: Mapping[str, Topic],
    dynamic: Mapping[str, Mapping[str, str]],
    groups: Mapping[str, Mapping[str, str]],
    broker: BrokerConfigs,
) -> Altered:
    """The result of `changes`, which a client sent to broker `node_id`.

    dynamic: the configs set at run time, by broker. groups: the configs of groups, by id. broker: all configs
    of broker `node_id`.
    """
    result = Altered(refuse_requests(changes, node_id), [], {}, {})
    for number, change in enumerate(changes):
        if result.outcome[number] is not None or change.resource_type == ResourceType.LOGGER:
            continue
        name = change.resource_name
        if change.resource_type == ResourceType.BROKER:
            name = ALL_BROKERS if name == ALL_BROKERS else str(node_id)  # "01" is broker 1
            after = _changed_broker(change, result.brokers.get(name, dynamic.get(name, {})), broker)
            if isinstance(after, dict):
                result.brokers[name] = after
        elif change.resource_type == ResourceType.GROUP:
            after = _changed_group(change, groups.get(name, {}), broker)
            if isinstance(after, dict):
                result.groups[name] = after
        else:
            after = _changed_topic(change, topics.get(name), broker)
            if isinstance(after, dict):
                result.topics.append(replace(topics[name], configs=after))
        result.outcome[number] = after if isinstance(after, Refusal) else None
    return result


def refuse_requests(changes: Sequence[ConfigChange], node_id: int) -> list[Refusal | None]:
    """Check each change by the request alone, without current configs. Returns a refusal or None for each."""
    times = Counter(change.resource for change in changes)
    return [TWICE if times[change.resource] > 1 else _refuse_request(change, node_id) for change in changes]


def _refuse_request(change: ConfigChange, node_id: int) -> Refusal | None:
    names = [operation.name for operation in change.operations]
    nulls = [
        each.name for each in change.operations if each.value is None and each.operation != Operation.DELETE
    ]
    unknown = [each.operation for each in change.operations if each.operation not in _OPERATIONS]
    fault = None
    if len(set(names)) < len(names):
        fault = "Error due to duplicate config keys"
    elif nulls:
        fault = f"Null value not supported for : {', '.join(nulls)}"
    elif change.resource_type not in _RESOURCE_TYPES or (
        change.resource_type == ResourceType.LOGGER and change.replaces
    ):
        fault = f"Unknown resource type {change.resource_type}"
    elif change.resource_type == ResourceType.BROKER and change.resource_name != ALL_BROKERS:
        fault = _fault_in_node_id(change.resource_name, node_id)
    if fault is None and unknown and change.resource_type != ResourceType.LOGGER:
        fault = f"Unknown operations type {unknown[0]}"
    return Refusal(ErrorCode.INVALID_REQUEST, fault) if fault else None


def _fault_in_node_id(name: str, node_id: int) -> str | None:
    asked = parse_node_id(name)
    if asked is None:
        return f"Node id must be an integer, but it is: {name}"
    return None if asked == node_id else f"Unexpected broker id, expected {node_id}, but received {name}"


def _changed_topic(
    change: ConfigChange, topic: Topic | None, broker: BrokerConfigs
) -> dict[str, str] | Refusal:
    """The overrides of a topic after `change`. topic: None if it does not exist."""
    after = _applied(change, topic.configs if topic else {}, TOPIC_CONFIGS)
    if isinstance(after, Refusal):
        return after
    if change.resource_name == "":
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = fault_in_name(change.resource_name)
    if fault:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    fault = fault_in_configs(after, broker)
    if fault:
        return Refusal(ErrorCode.INVALID_CONFIG, fault)
    if topic is None:
        message = f"The topic '{change.resource_name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    return after


def _changed_group(
    change: ConfigChange, configs: Mapping[str, str], broker: BrokerConfigs
) -> dict[str, str] | Refusal:
    """The configs of a group after `change`. The group need not exist."""
    after = _applied(change, configs, {})  # no config of a group takes APPEND, not even a list
    if isinstance(after, Refusal):
        return after
    if change.resource_name == "":
        return Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    fault = fault_in_group_configs(after, broker)
    return Refusal(ErrorCode.INVALID_CONFIG, fault) if fault else after


def _changed_broker(
    change: ConfigChange, configs: Mapping[str, str], broker: BrokerConfigs
) -> dict[str, str] | Refusal:
    """The dynamic configs of one broker, or of all, after `change`. As in Kafka, unknown names are kept."""
    after = _applied(change, configs, BROKER_CONFIGS)
    if isinstance(after, Refusal):
        return after
    fault = _fault_in_dynamic_configs(after, is_for_all=change.resource_name == ALL_BROKERS)
    fault = fault or fault_in_intervals(after, broker) or fault_in_cordoned(after, broker)
    return Refusal(ErrorCode.INVALID_REQUEST, fault) if fault else after


def _applied(
    change: ConfigChange, configs: Mapping[str, str], definitions: Mapping[str, Definition]
) -> dict[str, str] | Refusal:
    after = {} if change.replaces else dict(configs)
    for each in change.operations:
        definition = definitions.get(each.name)
        if each.operation == Operation.DELETE:
            after.pop(each.name, None)
        elif each.operation == Operation.SET:
            assert each.value is not None
            after[each.name] = each.value
        elif definition is None or definition.type is not ConfigType.LIST:
            return _not_a_list(change.resource_type, each, is_known=definition is not None)
        else:
            assert each.value is not None
            after[each.name] = _edited(each, after.get(each.name, definition.default) or "")
    return after


def _not_a_list(resource_type: int, operation: ConfigOperation, *, is_known: bool) -> Refusal:
    what = Operation(operation.operation).name
    message = f"Can't {what} to key {operation.name} because its type is not LIST."
    if resource_type == ResourceType.BROKER and not is_known:
        message = f"Unknown config name: {operation.name}"
    elif resource_type == ResourceType.BROKER:
        message = f"Config value {what.lower()} is not allowed for config key: {operation.name}"
    return Refusal(ErrorCode.INVALID_CONFIG, message)


def _edited(operation: ConfigOperation, text: str) -> str:
    """The list `text` after APPEND, which adds missing items, or SUBTRACT, which removes each item once."""
    assert operation.value is not None
    items, others = [item for item in text.split(",") if item], java.split(operation.value)
    if operation.operation == Operation.APPEND:
        known = set(items)
        return ",".join([*items, *(item for item in dict.fromkeys(others) if item not in known)])
    taken, kept = Counter(others), []
    for item in items:
        if taken[item]:
            taken[item] -= 1
        else:
            kept.append(item)
    return ",".join(kept)


def _fault_in_dynamic_configs(configs: Mapping[str, str], *, is_for_all: bool) -> str | None:
    by_update: dict[Update, list[str]] = {update: [] for update in Update}
    for name in configs:
        if name.startswith(LISTENER_PREFIX):
            by_update[Update.NEVER].append(name)
        elif name in BROKER_CONFIGS:
            by_update[BROKER_CONFIGS[name].update].append(name)
    if fixed := by_update[Update.NEVER]:
        return f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
    if of_listeners := by_update[Update.LISTENER]:
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(of_listeners)}]"
        )
    faults = (DYNAMIC_CONFIGS[name].fault(text) for name, text in configs.items() if name in DYNAMIC_CONFIGS)
    if fault := next(filter(None, faults), None):
        return fault
    if is_for_all and (of_one := by_update[Update.BROKER]):
        return (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(of_one)}]"
        )
    return None
