"""Each client's consumers get the settings by its own names."""

from __future__ import annotations

from typing import get_args

import pytest

from kshim.testing import Cluster
from kshim.testing.client_settings import Client

CLUSTER = Cluster("a:1,b:2")
HEARTBEATS = {
    "kafka-python": "heartbeat_interval_ms",
    "aiokafka": "heartbeat_interval_ms",
    "confluent-kafka": "heartbeat.interval.ms",
    "java": "heartbeat.interval.ms",
    "kafkajs": "heartbeatInterval",
}


@pytest.mark.parametrize("client", get_args(Client))
def test_heartbeats_are_frequent(client: Client) -> None:
    settings = CLUSTER.consumer_settings(client, "readers")
    if client == "quixstreams":
        assert settings["consumer_extra_config"] == {"heartbeat.interval.ms": 100}
    else:
        assert settings[HEARTBEATS[client]] in (100, "100")
    assert "readers" in settings.values()
    assert "readers" not in CLUSTER.consumer_settings(client).values()


def test_java_s_properties_are_text() -> None:
    assert CLUSTER.consumer_settings("java", "g") == {
        "bootstrap.servers": "a:1,b:2",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": "100",
        "retry.backoff.ms": "10",
    }


def test_an_unknown_client_is_refused() -> None:
    with pytest.raises(ValueError, match=r"client has to be one of kafka-python, .* not 'kafka'"):
        CLUSTER.consumer_settings("kafka", "g")  # type: ignore[arg-type]
