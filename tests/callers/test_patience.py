"""Whose heartbeats may wait."""

import pytest

from kshim.callers.patience import is_patient, waits_longer_than_the_interval, waits_when_it_joins
from tests.api.harness import context


@pytest.mark.parametrize(
    ("software", "client_id", "patient"),
    [
        ("apache-kafka-java 4.2.0", "consumer-g-1", True),
        ("kafka-python 3.0.12", "kafka-python-3.0.12", True),
        ("librdkafka 2.12.1", "rdkafka", True),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", "rdkafka", True),
        ("confluent-kafka-javascript 1.10.1-librdkafka-2.15.0", "rdkafka", True),
        ("kgo v1.22.2", "kgo", True),
        ("platformatic-kafka 1.35.0", "id", True),
        ("sarama v1.61.1", "sarama", False),
        ("", "aiokafka-0.13.0", True),
        ("", "kafkajs", False),
        ("", "consumer-2", False),
        ("", "", False),
        ("someone-else 1.0", "aiokafka-0.13.0", False),
    ],
)
def test_clients_are_known_by_their_software(software: str, client_id: str, patient: bool) -> None:
    of_client = context(4)
    of_client.client_id = client_id
    assert of_client.client is not None
    of_client.client.software = software
    assert is_patient(of_client) == patient


@pytest.mark.parametrize(
    ("software", "joins", "longer"),
    [
        ("apache-kafka-java 4.4.0", False, False),
        ("librdkafka 2.12.1", True, False),
        ("kgo v1.22.3", True, True),
        ("", True, False),
    ],
)
def test_clients_wait_as_long_as_they_can(software: str, joins: bool, longer: bool) -> None:
    of_client = context(4)
    assert of_client.client is not None
    of_client.client.software = software
    assert waits_when_it_joins(of_client) == joins
    assert waits_longer_than_the_interval(of_client) == longer
