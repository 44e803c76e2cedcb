"""Attacks with topics that have many partitions."""

from __future__ import annotations

from collections.abc import Sequence

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.requests import TIMEOUT_MS, TOPIC, create_topic, new_topic
from kshim.testing.wire import Wire, framed
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.elect_leaders import ElectLeadersRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

MOST_PARTITIONS = 9_990
"""Nearly as many as one request may create."""
WIDE_TOPICS = 30
AUTO_CREATED = 5_000
DELETED_PARTITIONS = 5_000
ROUNDS = 6


def _create_topics(wire: Wire) -> Sequence[Volley]:
    topics = tuple(new_topic(f"topic-{number}", 10_000) for number in range(100))
    checked = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=True)
    created = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    several = [
        framed(
            4,
            CreateTopicsRequest(
                topics=(new_topic(f"wide-{number}", MOST_PARTITIONS),), timeout_ms=TIMEOUT_MS
            ),
        )
        for number in range(WIDE_TOPICS)
    ]
    return [
        Volley(label="CreateTopics, validate_only", frames=[framed(4, checked)]),
        Volley(label="CreateTopics, a million partitions", frames=[framed(4, created)]),
        Volley(label="CreateTopics, again and again", frames=several),
        Volley(label="Metadata of all", frames=[framed(9, MetadataRequest(topics=None))] * 3),
    ]


def _elect_leaders(wire: Wire) -> Sequence[Volley]:
    create_topic(wire, partitions=MOST_PARTITIONS)
    broker = wire.ask(4, MetadataRequest(topics=())).brokers[0].node_id
    everything = framed(1, ElectLeadersRequest(topic_partitions=None, timeout_ms=TIMEOUT_MS))
    partitions = tuple(
        ReassignablePartition(partition_index=index, replicas=(broker,)) for index in range(MOST_PARTITIONS)
    )
    topic = ReassignableTopic(name=TOPIC, partitions=partitions)
    reassigned = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=(topic,))
    return [
        Volley(label="ElectLeaders", frames=[everything] * 5),
        Volley(label="AlterPartitionReassignments", frames=[framed(0, reassigned)] * 5),
    ]


def _auto_create(wire: Wire) -> Sequence[Volley]:
    requests = [
        MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=f"auto-{number}-{name}") for name in range(AUTO_CREATED)),
            allow_auto_topic_creation=True,
        )
        for number in range(3)
    ]
    return [Volley(label="Metadata", frames=[framed(4, request) for request in requests])]


def _deleted_partitions(wire: Wire) -> Sequence[Volley]:
    frames = []
    for number in range(ROUNDS):
        name = f"brief-{number}"
        topics = (new_topic(name, DELETED_PARTITIONS),)
        frames += [
            framed(4, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)),
            framed(3, DeleteTopicsRequest(topic_names=(name,), timeout_ms=TIMEOUT_MS)),
        ]
    return [Volley(label="CreateTopics, DeleteTopics", frames=frames)]


ATTACKS = (
    Attack(
        name="create-topics",
        what=f"one CreateTopics of a million partitions, and {WIDE_TOPICS} of ten thousand; Metadata of all",
        arm=_create_topics,
        bounds=Bounds(kept_bytes=200 * MB),  # the created topics remain
    ),
    Attack(
        name="elect-leaders",
        what=f"ElectLeaders and AlterPartitionReassignments of {MOST_PARTITIONS:,} partitions",
        arm=_elect_leaders,
    ),
    Attack(
        name="auto-create",
        what=f"three Metadata requests that create {AUTO_CREATED:,} topics each",
        arm=_auto_create,
    ),
    Attack(
        name="deleted-partitions",
        what=f"topics of {DELETED_PARTITIONS:,} partitions are created and deleted again and again",
        arm=_deleted_partitions,
    ),
)
