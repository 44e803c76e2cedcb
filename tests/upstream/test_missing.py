"""What an older upstream lacks."""

from __future__ import annotations

from kshim.upstream.missing import OLDEST, PARTS, lacks, missing
from schemas.api_key import ApiKey

ALL = {key: range(100) for key in ApiKey}


def test_the_parts_that_a_broker_lacks_are_named_with_their_releases() -> None:
    assert missing(ALL) == ""
    of_39 = {
        **ALL,
        ApiKey.OFFSET_COMMIT: range(10),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: range(1),
        ApiKey.SHARE_GROUP_HEARTBEAT: range(1),
    }
    del of_39[ApiKey.STREAMS_GROUP_HEARTBEAT]
    assert missing(of_39) == (
        "configs of groups (Kafka 4.0), groups of the consumer protocol (Kafka 4.0), commits by topic id "
        "(Kafka 4.1), share groups (Kafka 4.2), streams groups (Kafka 4.2)"
    )


def test_topic_ids_are_needed() -> None:
    assert not lacks({ApiKey.METADATA: range(11)}, OLDEST)
    assert lacks({ApiKey.METADATA: range(10)}, OLDEST)
    assert [each.since for each in PARTS] == sorted(each.since for each in PARTS)
