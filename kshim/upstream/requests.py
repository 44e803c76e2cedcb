"""Large requests that go on to the broker in parts, as they come.

A Produce to several topics is collected: the name of its last topic may come after megabytes.
"""

from __future__ import annotations

from typing import Final

from kshim.upstream import peek
from schemas.api_key import ApiKey

LARGE_BYTES: Final = 64 * 1024


def large_produce(size: int, start: memoryview) -> bytes | None:
    """Return the topic (name or id) of a Produce of LARGE_BYTES or more to one topic. None for any other
    request, and while the topic cannot be read yet. start: the first bytes of the request.
    """
    if size < LARGE_BYTES or len(start) < peek.HEAD_BYTES:
        return None
    api_key, api_version, _ = peek.head(start)
    if api_key != ApiKey.PRODUCE:
        return None
    head = peek.produce_head(start, api_version)
    return None if head is None or head.topics > 1 else head.topic
