"""The names of brokers that share one port."""

from __future__ import annotations

import pytest

from kshim.configs.host_pattern import HostPattern, host_pattern

PATTERN = HostPattern("b$(nodeId).Kafka.example.com")


def test_a_name_is_made_and_read() -> None:
    for node_id in (0, 7, 2**31 - 1):
        assert PATTERN.node_id(PATTERN.host(node_id)) == node_id
    assert PATTERN.host(3) == "b3.Kafka.example.com"


def test_names_are_read_in_small_and_large_letters_and_with_a_dot_at_the_end() -> None:
    assert PATTERN.node_id("B12.KAFKA.example.com") == 12
    assert PATTERN.node_id("b12.kafka.example.com.") == 12


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "b.kafka.example.com",
            "b01.kafka.example.com",
            "b-1.kafka.example.com",
            "b1.kafka.example.org",
        ),
        *("c1.kafka.example.com", "b1", "1", "b1.kafka.example.com..", "b٣.kafka.example.com"),
        f"b{'9' * 5000}.kafka.example.com",
    ],
)
def test_other_names_name_no_broker(name: str) -> None:
    assert PATTERN.node_id(name) is None


def test_the_node_id_may_stand_anywhere_but_once() -> None:
    assert host_pattern("") is None
    for text in ("$(nodeId)", "$(nodeId).a", "kafka-$(nodeId)-x.a.b"):
        found = host_pattern(text)
        assert found is not None
        assert found.node_id(found.host(5)) == 5
    for text in (
        "kafka",
        "$(nodeId).$(nodeId)",
        "b$(nodeid).a",
        "b$(nodeId).a:9092",
        "b$(nodeId)..a",
        "b $(nodeId)",
    ):
        with pytest.raises(ValueError, match="expected a host name with"):
            host_pattern(text)
