"""Clients that send what Apache Kafka 4 has dropped (KIP-896): their connection is closed, as by Kafka."""

from __future__ import annotations

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from integration.mistakes.conftest import TIMEOUT_S, Told
from integration.support.handmade import FETCH, PRODUCE, Raw, request
from integration.support.server import Server
from kshim.callers.mistake import Mistake

PRODUCE_V1 = {"api": "Produce (0) v1", "first": 3, "last": 13}


@pytest.mark.parametrize(("api_key", "version"), [(FETCH, 3), (PRODUCE, 2)])
def test_both_servers_close_the_connection(both: tuple[Server, Server], api_key: int, version: int) -> None:
    for server in both:
        with Raw(server) as client:
            client.sendall(request(api_key, version))
            assert client.is_closed_by_server()


def test_a_producer_that_behaves_as_in_2015(own_server: Server, told: Told) -> None:
    """Its own words are no help: the connection was lost, or nothing was heard in time."""
    producer = KafkaProducer(
        bootstrap_servers=own_server.bootstrap,
        client_id="museum",
        api_version=(0, 9),
        acks=1,
        enable_idempotence=False,
        delivery_timeout_ms=3000,
        request_timeout_ms=2000,
    )
    with pytest.raises(KafkaError):
        producer.send("t", b"v").get(timeout=TIMEOUT_S)
    assert "(client_id 'museum')" in told(Mistake.OLD_VERSION, PRODUCE_V1)
    producer.close(timeout=1)
