"""Settings of clients with which groups rebalance quickly in tests.

A member that has just been given its partitions hears of the next rebalance with its first heartbeat. Clients
send that one heartbeat interval after the assignment, which is 3 s by default. With an interval of 0.1 s a
test that starts consumers one after the other does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

__all__ = ["Client", "Settings", "consumer_settings"]

Client = Literal["kafka-python", "aiokafka", "confluent-kafka", "java", "kafkajs", "quixstreams"]
Settings = dict[str, object]

HEARTBEAT_INTERVAL_MS: Final = 100
RETRY_BACKOFF_MS: Final = 10


def _kafka_python(bootstrap: str, group: str | None) -> Settings:
    named: Settings = {} if group is None else {"group_id": group}
    return {
        "bootstrap_servers": bootstrap,
        **named,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "retry_backoff_ms": RETRY_BACKOFF_MS,
    }


def _properties(bootstrap: str, group: str | None) -> Settings:
    """Properties by Kafka's own names."""
    named: Settings = {} if group is None else {"group.id": group}
    return {
        "bootstrap.servers": bootstrap,
        **named,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
    }


def _java(bootstrap: str, group: str | None) -> Settings:
    values = {**_properties(bootstrap, group), "retry.backoff.ms": RETRY_BACKOFF_MS}
    return {name: str(value) for name, value in values.items()}


def _kafkajs(bootstrap: str, group: str | None) -> Settings:
    named: Settings = {} if group is None else {"groupId": group}
    return {"brokers": bootstrap.split(","), **named, "heartbeatInterval": HEARTBEAT_INTERVAL_MS}


def _quixstreams(bootstrap: str, group: str | None) -> Settings:
    named: Settings = {} if group is None else {"consumer_group": group}
    return {
        "broker_address": bootstrap,
        **named,
        "auto_offset_reset": "earliest",
        "consumer_extra_config": {"heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS},
    }


_OF: Final[Mapping[str, Callable[[str, str | None], Settings]]] = {
    "kafka-python": _kafka_python,
    "aiokafka": _kafka_python,
    "confluent-kafka": _properties,
    "java": _java,
    "kafkajs": _kafkajs,
    "quixstreams": _quixstreams,
}


def consumer_settings(client: str, bootstrap: str, group: str | None) -> Settings:
    """Return the settings of one client, by its own names. Raises ValueError for an unknown client."""
    if client not in _OF:
        raise ValueError(f"client has to be one of {', '.join(get_args(Client))}, not {client!r}")
    return _OF[client](bootstrap, group)
