"""Endpoints as users write them."""

import pytest

from kshim.configs.endpoint import Endpoint


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
