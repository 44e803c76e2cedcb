"""Reads the topics that the members of a group subscribe to from the metadata that they sent.

Most members of a group subscribe to the same topics; equal lists of topics are read once.
"""

from __future__ import annotations

from functools import lru_cache

from schemas.consumer_protocol import decode_topics
from schemas.message import MalformedMessage

MOST_TOPICS = 100_000
MOST_BYTES = 8_000_000
"""How many topics the members of a group may name, in MOST_TOPICS topics and MOST_BYTES bytes. Equal lists
count once.
"""
MOST_KINDS = 10
"""A subscription is compared with the lists of topics of at most this many others before it is read."""
HEAD_BYTES = 2
"""The size of the version, which the topics follow."""


@lru_cache(maxsize=1)
def topics_of(subscriptions: tuple[bytes, ...]) -> frozenset[str] | None:
    """All topics that the subscriptions name; None if one is malformed, or they name too many topics.

    The last result is kept, because a large request about one group asks for it again and again.
    """
    topics: set[str] = set()
    known: list[bytes] = []
    left, left_bytes = MOST_TOPICS, MOST_BYTES
    for subscription in subscriptions:
        if any(subscription.startswith(each, HEAD_BYTES) for each in known):
            continue
        try:
            named = decode_topics(subscription, left)
        except MalformedMessage:
            return None
        size = 4 + sum(2 + len(topic.encode()) for topic in named)
        left, left_bytes = left - len(named), left_bytes - size
        if left_bytes < 0:
            return None
        topics.update(named)
        if len(known) < MOST_KINDS:
            known.append(subscription[HEAD_BYTES : HEAD_BYTES + size])
    return frozenset(topics)
