"""Keys go where the Java client puts them."""

from __future__ import annotations

import pytest

from kshim.client.partitioner import _murmur2, partition_for

KAFKA = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
"""Of Apache Kafka's own UtilsTest."""


@pytest.mark.parametrize("key", KAFKA)
def test_murmur2_is_kafkas(key: bytes) -> None:
    assert _murmur2(key) == KAFKA[key] % 2**32


def test_a_partition_is_never_negative() -> None:
    assert {partition_for(b"%d" % number, 3) for number in range(100)} == {0, 1, 2}
