"""Endpoints as users write them, addresses in Java's words."""

import pytest

from kshim.addresses import Endpoint, java_host, unmapped


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("127.0.0.1:9092", Endpoint("127.0.0.1", 9092)),
        ("kafka.example.org:0", Endpoint("kafka.example.org", 0)),
        ("[::1]:9092", Endpoint("::1", 9092)),
        (":9092", Endpoint("", 9092)),
    ],
)
def test_endpoints_are_read_and_written(text: str, endpoint: Endpoint) -> None:
    assert Endpoint.parse(text) == endpoint
    assert str(endpoint) == text


@pytest.mark.parametrize(
    "text", ["", "9092", "localhost", "::1:9092", "a b:1", "a:65536", "a:-1", "a:x", "a:１"]
)
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        Endpoint.parse(text)


# As Java's InetAddress.getByName(...).toString() gives them.
@pytest.mark.parametrize(
    ("host", "java"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("fe80::1:0:20", "/fe80:0:0:0:0:1:0:20"),
        ("2001:db8::ff00:42:8329", "/2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:127.0.0.1", "/127.0.0.1"),
        ("fe80::1%2", "/fe80:0:0:0:0:0:0:1%2"),
    ],
)
def test_addresses_as_java_prints_them(host: str, java: str) -> None:
    assert java_host(host) == java


def test_an_ipv4_address_in_ipv6_clothes() -> None:
    hosts = ("::ffff:10.0.0.1", "::1", "10.0.0.1")
    assert list(map(unmapped, hosts)) == ["10.0.0.1", "::1", "10.0.0.1"]
