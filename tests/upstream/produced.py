"""Produce requests of a given size."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kshim.testing.wire import payload
from schemas.messages.produce import ProduceRequest, TopicProduceData

TOPIC_ID = UUID(int=7 << 64 | 9)


def produce(
    size: int = 0,
    version: int = 9,
    client_id: str = "c",
    transactional_id: str | None = None,
    topics: Sequence[str] = ("to",),
) -> bytes:
    """A Produce, with bytes behind it up to a size."""
    data = tuple(TopicProduceData(name=name, topic_id=TOPIC_ID) for name in topics)
    produced = ProduceRequest(transactional_id=transactional_id, acks=1, topic_data=data)
    request = payload(version, produced, client_id, 7)
    return request + bytes(range(256)) * (max(0, size - len(request)) // 256 + 1)
