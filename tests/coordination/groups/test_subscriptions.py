"""The topics of a group, read from what its members sent."""

from __future__ import annotations

import pytest

from kshim.coordination.groups import subscriptions
from kshim.coordination.groups.subscriptions import topics_of
from schemas.consumer_protocol import ConsumerProtocolSubscription, decode_topics, encode_subscription
from schemas.message import MalformedMessage


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    return encode_subscription(ConsumerProtocolSubscription(topics=topics, user_data=user_data))


def test_the_topics_of_all_members() -> None:
    assert topics_of((subscription("a", "ü"), subscription("b"), subscription("a", "ü"))) == {"a", "ü", "b"}
    assert topics_of(()) == frozenset()


def test_what_is_named_alike_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever follows the topics."""
    read = []

    def decode(data: bytes, most: int) -> tuple[str, ...]:
        read.append(data)
        return decode_topics(data, most)

    monkeypatch.setattr(subscriptions, "decode_topics", decode)
    members = tuple(subscription("once", "ü", user_data=b"%d" % n) for n in range(100))
    assert topics_of(members) == {"once", "ü"}
    assert topics_of(members) == {"once", "ü"}
    assert len(read) == 1


def test_one_that_cannot_be_read_may_name_anything() -> None:
    assert topics_of((subscription("a"), b"\0")) is None


def test_too_many_topics_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_TOPICS", 4)
    few, more = subscription("a", "b"), subscription("c", "d", "e")
    assert topics_of((few, few, few)) == {"a", "b"}
    assert topics_of((few, more)) is None
    assert topics_of((few, subscription("c", "d"), subscription())) == {"a", "b", "c", "d"}


def test_too_many_bytes_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MOST_BYTES", 1_000)
    assert topics_of((subscription("a" * 900),)) == {"a" * 900}
    assert topics_of((subscription("a" * 900), subscription("b" * 900))) is None


def test_three_million_topics_are_not_looked_at() -> None:
    with pytest.raises(MalformedMessage, match="more than 100000 elements"):
        decode_topics(bytes(2) + (3_000_000).to_bytes(4) + bytes(6_000_004))
