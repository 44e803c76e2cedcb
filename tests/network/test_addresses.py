"""Addresses as Java prints them."""

import pytest

from kshim.network.addresses import java_host, unmapped


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
