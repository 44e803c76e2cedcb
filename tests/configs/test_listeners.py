"""`listeners` and the properties beside it: their meaning, and Kafka's rules for them."""

from __future__ import annotations

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.configs.listeners import (
    ListenerConfig,
    ListenerTexts,
    SecurityProtocol,
    WrongListener,
    listeners_of,
    override,
)

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = SecurityProtocol
SEVERAL = "INSIDE:PLAINTEXT, outside : SSL"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (ListenerTexts("h:1"), [ListenerConfig("PLAINTEXT", PLAINTEXT, Endpoint("h", 1))]),
        (ListenerTexts("PLAINTEXT://[::]:0"), [ListenerConfig("PLAINTEXT", PLAINTEXT, Endpoint("::", 0))]),
        (
            ListenerTexts("SSL://:1, SASL_SSL://h:2,SASL_PLAINTEXT://h:3"),
            [
                ListenerConfig("SSL", SSL, Endpoint("", 1)),
                ListenerConfig("SASL_SSL", SASL_SSL, Endpoint("h", 2)),
                ListenerConfig("SASL_PLAINTEXT", SASL_PLAINTEXT, Endpoint("h", 3)),
            ],
        ),
        (
            ListenerTexts("inside://:1,OUTSIDE://:2", "Outside://kafka.example:9", SEVERAL),
            [
                ListenerConfig("INSIDE", PLAINTEXT, Endpoint("", 1)),
                ListenerConfig("OUTSIDE", SSL, Endpoint("", 2), Endpoint("kafka.example", 9)),
            ],
        ),
        (
            ListenerTexts("OUTSIDE://:2", "kafka.example:9", SEVERAL),
            [ListenerConfig("OUTSIDE", SSL, Endpoint("", 2), Endpoint("kafka.example", 9))],
        ),
        (
            ListenerTexts("A://:1,C://:2", "A://h:1,C://h:2,D://h:3", "A:PLAINTEXT", "c, D"),
            [ListenerConfig("A", PLAINTEXT, Endpoint("", 1), Endpoint("h", 1))],
        ),
        (
            ListenerTexts("PLAINTEXT://127.0.0.1:1,SSL://[::1]:1"),
            [
                ListenerConfig("PLAINTEXT", PLAINTEXT, Endpoint("127.0.0.1", 1)),
                ListenerConfig("SSL", SSL, Endpoint("::1", 1)),
            ],
        ),
        # What advertised.listeners says of a listener may be the address of another one.
        (
            ListenerTexts("PLAINTEXT://:1,SSL://:2", "PLAINTEXT://h:5,SSL://h:5"),
            [
                ListenerConfig("PLAINTEXT", PLAINTEXT, Endpoint("", 1), Endpoint("h", 5)),
                ListenerConfig("SSL", SSL, Endpoint("", 2), Endpoint("h", 5)),
            ],
        ),
        # The short form needs no entry in the map.
        (ListenerTexts("h:1", "", SEVERAL), [ListenerConfig("PLAINTEXT", PLAINTEXT, Endpoint("h", 1))]),
    ],
)
def test_listeners(texts: ListenerTexts, found: list[ListenerConfig]) -> None:
    assert list(listeners_of(texts)) == found


@pytest.mark.parametrize(
    ("texts", "name", "why"),
    [
        (ListenerTexts(""), "listeners", "expected HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092"),
        (ListenerTexts("SSL://:1,"), "listeners", "expected HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092"),
        (ListenerTexts("SSL://:x"), "listeners", "expected HOST:PORT with a port from 0 to 65535"),
        (ListenerTexts("SSL://:1,ssl://:2"), "listeners", "expected each name once, but SSL comes twice"),
        (
            ListenerTexts("SSL://:1,PLAINTEXT://:1"),
            "listeners",
            "expected different ports, but SSL and PLAINTEXT both have 1",
        ),
        (
            ListenerTexts("SSL://127.0.0.1:1,PLAINTEXT://127.0.0.2:1"),
            "listeners",
            "expected different ports, but SSL and PLAINTEXT both have 1",
        ),
        (
            ListenerTexts("A://:1"),
            "listeners",
            "expected an entry for A in listener.security.protocol.map, as in A:PLAINTEXT",
        ),
        (
            ListenerTexts("PLAINTEXT://:1", "", SEVERAL),
            "listeners",
            "expected an entry for PLAINTEXT in listener.security.protocol.map, as in PLAINTEXT:PLAINTEXT",
        ),
        (
            ListenerTexts("A://:1", "", "A:TLS"),
            "listener.security.protocol.map",
            "expected NAME:PROTOCOL,…, where PROTOCOL is PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            ListenerTexts("A://:1", "", "A"),
            "listener.security.protocol.map",
            "expected NAME:PROTOCOL,…, where PROTOCOL is PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            ListenerTexts("A://:1", "", "A:SSL", "A"),
            "listeners",
            "expected a listener for clients, as in PLAINTEXT://127.0.0.1:9092",
        ),
        (
            ListenerTexts("SSL://:1,PLAINTEXT://:2", "h:1"),
            "advertised.listeners",
            "expected the listener of each address, as in SSL://h:1",
        ),
        (
            ListenerTexts("SSL://:1", "PLAINTEXT://h:1"),
            "advertised.listeners",
            "expected names that listeners has, which are SSL; PLAINTEXT is not among them",
        ),
        (
            ListenerTexts("SSL://:1", "SSL://0.0.0.0:1"),
            "advertised.listeners",
            "expected an address that clients can connect to, but 0.0.0.0 is every address",
        ),
        (
            ListenerTexts("SSL://:1", "SSL://[::]:1"),
            "advertised.listeners",
            "expected an address that clients can connect to, but :: is every address",
        ),
        (
            ListenerTexts("SSL://:65534", brokers=3),
            "listeners",
            "expected ports for 3 brokers from 65534 on; the last is 65535",
        ),
        (
            ListenerTexts("SSL://:1", "SSL://h:65535", brokers=2),
            "advertised.listeners",
            "expected ports for 2 brokers from 65535 on; the last is 65535",
        ),
        (
            ListenerTexts("SSL://:9093,PLAINTEXT://:9092", brokers=2),
            "listeners",
            "expected 2 ports for each listener, one a broker, but PLAINTEXT begins with 9092, and SSL with "
            "9093",
        ),
    ],
)
def test_what_is_wrong_is_told(texts: ListenerTexts, name: str, why: str) -> None:
    with pytest.raises(WrongListener) as caught:
        listeners_of(texts)
    assert (caught.value.name, str(caught.value)) == (name, why)


def test_the_listeners_of_further_brokers() -> None:
    told = Endpoint("h", 5)
    listener = ListenerConfig("SSL", SSL, Endpoint("", 1), told)
    assert listener.of_broker(2) == ListenerConfig("SSL", SSL, Endpoint("", 3), Endpoint("h", 7))
    anywhere = ListenerConfig("SSL", SSL, Endpoint("", 0))
    assert anywhere.of_broker(2) == anywhere


def test_clients_of_a_listener_with_tls_are_told_its_name() -> None:
    """They compare it with the certificate; an address may not be in that."""
    texts = "SSL://kafka.example:1,SASL_SSL://127.0.0.1:2,SASL_PLAINTEXT://kafka.example:3"
    found = [listener.named for listener in listeners_of(ListenerTexts(texts))]
    assert found == [Endpoint("kafka.example", 1), None, None]
    assert ListenerConfig("SSL", SSL, Endpoint("", 1)).named is None


def test_a_listener_may_have_a_property_of_its_own() -> None:
    properties = {"ssl.client.auth": "none", "listener.name.outside.ssl.client.auth": "required"}
    assert override(properties, "OUTSIDE", "ssl.client.auth") == "required"
    assert override(properties, "INSIDE", "ssl.client.auth") == "none"
    assert override(properties, "INSIDE", "ssl.keystore.location") is None


def test_what_is_spoken() -> None:
    assert [protocol for protocol in SecurityProtocol if protocol.is_tls] == [SSL, SASL_SSL]
    assert [protocol for protocol in SecurityProtocol if protocol.is_sasl] == [SASL_PLAINTEXT, SASL_SSL]
