"""Requests of many megabytes, which must be decoded before they can be refused."""

from __future__ import annotations

from collections.abc import Sequence

from integration.hostile.attack import Attack, Volley
from integration.hostile.requests import TIMEOUT_MS, TOPIC, create_topic
from kshim.testing.wire import Wire, framed
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

TAGS_BYTES = 10_000_000
LONG_NAMES = 300
MOST_NAME_BYTES = 32_767


def _big_decode(wire: Wire) -> Sequence[Volley]:
    empty = OffsetFetchRequestTopic(name="", partition_indexes=())
    full = OffsetFetchRequestTopic(name="t", partition_indexes=(0,) * 2_500_000)
    join = JoinGroupRequest(
        group_id="attacker",
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        group_instance_id="static",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="", metadata=b""),) * 3_300_000,
    )
    forgotten = (ForgottenTopic(topic="", partitions=()),) * 3_300_000
    nameless = (MetadataRequestTopic(name=""),) * 5_000_000
    requests = [
        ("OffsetFetch, 1.7 M topics", 1, OffsetFetchRequest(group_id="g", topics=(empty,) * 1_700_000)),
        ("OffsetFetch, 2.5 M partitions", 1, OffsetFetchRequest(group_id="g", topics=(full,))),
        ("JoinGroup, 3.3 M protocols", 6, join),
        ("Fetch, 3.3 M forgotten topics", 12, FetchRequest(forgotten_topics_data=forgotten)),
        ("Metadata, 5 M topics", 9, MetadataRequest(topics=nameless, allow_auto_topic_creation=False)),
    ]
    return [Volley(label=label, frames=[framed(version, request)]) for label, version, request in requests]


def _fetch_sessions(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    partition = FetchPartition(partition=0, partition_max_bytes=1)
    tags = ((1000, bytes(TAGS_BYTES)),)
    tagged = FetchPartition(partition=0, partition_max_bytes=1, unknown_tags=tags)
    long = tuple(
        FetchTopic(topic=f"{number:x<{MOST_NAME_BYTES}}", partitions=(partition,))
        for number in range(LONG_NAMES)
    )
    return [
        Volley(label=label, frames=[framed(12, _new_session(topics))], connections=40)
        for label, topics in (
            ("unknown tagged fields", (FetchTopic(topic=TOPIC, partitions=(tagged,)),)),
            ("long names", long),
        )
    ]


def _new_session(topics: tuple[FetchTopic, ...]) -> FetchRequest:
    return FetchRequest(max_bytes=1, session_id=0, session_epoch=0, topics=topics)


ATTACKS = (
    Attack(
        name="big-decode",
        what="requests of 10 MB with as many array elements as there is room for",
        arm=_big_decode,
    ),
    Attack(
        name="fetch-sessions",
        what="40 connections create a fetch session each, with a request of 10 MB, and close",
        arm=_fetch_sessions,
    ),
)
