"""The topic of the groups' journal: found, made, or refused with one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.storage.interfaces import StorageError
from kshim.upstream.link import LinkError
from kshim.upstream.shards.batch_limit import DEFAULT_BYTES
from kshim.upstream.shards.topic import PAUSE_S, TRIES, Wanted, find_or_make, max_message_bytes
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from schemas.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.api.harness import PENDING, result

TOPIC, PARTITIONS = "__kshim_groups", 50


class Upstream:
    """Answers as a cluster does that has the topic, or makes it."""

    def __init__(self, partitions: int = 0, brokers: int = 3, error: ErrorCode = ErrorCode.NONE) -> None:
        self.partitions, self.brokers, self.error = partitions, brokers, error
        self.made: list[CreateTopicsRequest] = []
        self.making = ErrorCode.NONE
        self.is_lost = False
        self.configured = DescribeConfigsResult(error_message=None)

    def ask(self, request: Any) -> Deferred[Any]:
        if self.is_lost:
            return fail(LinkError("upstream broker 10.0.0.1:9092 cannot be reached: Connection refused"))
        if isinstance(request, DescribeConfigsRequest):
            return succeed(DescribeConfigsResponse(results=(self.configured,)))
        if isinstance(request, CreateTopicsRequest):
            self.made.append(request)
            if self.making is ErrorCode.NONE:
                self.partitions = request.topics[0].num_partitions
            made = CreatableTopicResult(name=TOPIC, error_code=self.making, error_message="because")
            return succeed(CreateTopicsResponse(topics=(made,)))
        error = self.error if self.error or self.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = MetadataResponseTopic(
            name=TOPIC,
            error_code=error,
            partitions=tuple(
                MetadataResponsePartition(partition_index=each) for each in range(self.partitions)
            ),
        )
        brokers = tuple(
            MetadataResponseBroker(node_id=each, host="k", port=1) for each in range(self.brokers)
        )
        return succeed(MetadataResponse(brokers=brokers, topics=(topic,)))


def outcome(upstream: Upstream, tries: int = 2, replicas: int = -1) -> Any:
    """The number of partitions, or the error as a line, or PENDING."""
    clock = Clock()
    found: list[Any] = [PENDING]
    asked = Deferred.fromCoroutine(find_or_make(upstream.ask, clock, Wanted(TOPIC, PARTITIONS, replicas)))
    asked.addCallbacks(
        found.append, lambda failure: found.append(str(failure.trap(StorageError) and failure.value))
    )
    for _ in range(tries):
        clock.advance(PAUSE_S)
    return found[-1]


def configs(upstream: Upstream) -> dict[str, str | None]:
    (request,) = upstream.made
    return {each.name: each.value for each in request.topics[0].configs}


def test_a_topic_that_is_there_is_taken_as_it_is() -> None:
    upstream = Upstream(partitions=7)
    assert outcome(upstream) == 7
    assert upstream.made == []


@pytest.mark.parametrize(("brokers", "replicas"), [(1, (1, "1")), (2, (2, "1")), (5, (3, "2"))])
def test_a_new_topic_is_as_safe_as_the_cluster_can_be(brokers: int, replicas: Sequence[object]) -> None:
    upstream = Upstream(brokers=brokers)
    assert outcome(upstream) == PARTITIONS
    found = configs(upstream)
    assert (upstream.made[0].topics[0].replication_factor, found["min.insync.replicas"]) == replicas
    assert found["cleanup.policy"] == "compact"
    assert found["message.timestamp.type"] == "LogAppendTime"
    assert found["max.message.bytes"] == str(DEFAULT_BYTES)
    assert found["unclean.leader.election.enable"] == "false"


def test_a_topic_that_may_not_be_made() -> None:
    upstream = Upstream()
    upstream.making = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert outcome(upstream) == (
        "the upstream refuses topic __kshim_groups, where groups are kept; kshim needs CREATE on the cluster"
        " or the topic: TOPIC_AUTHORIZATION_FAILED: because"
    )


def test_a_topic_that_may_not_be_seen() -> None:
    assert outcome(Upstream(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)) == (
        "the upstream refuses topic __kshim_groups, where groups are kept; kshim needs DESCRIBE, READ and"
        " WRITE on the topic: TOPIC_AUTHORIZATION_FAILED"
    )


def test_two_processes_make_it_at_the_same_time() -> None:
    upstream = Upstream()
    upstream.making = ErrorCode.TOPIC_ALREADY_EXISTS
    assert outcome(upstream) is PENDING
    upstream.partitions = 50
    assert outcome(upstream) == 50


def test_an_upstream_that_does_not_answer_is_asked_again_for_a_while() -> None:
    upstream = Upstream(partitions=50)
    upstream.is_lost = True
    assert outcome(upstream) is PENDING
    assert outcome(upstream, TRIES) == (
        "the upstream's topic __kshim_groups: upstream broker 10.0.0.1:9092 cannot be reached: Connection"
        " refused"
    )


@pytest.mark.parametrize(("wanted", "made"), [(-1, 3), (1, 1), (5, 5)])
def test_replicas_that_are_asked_for(wanted: int, made: int) -> None:
    """More than there are brokers is for the upstream to refuse."""
    upstream = Upstream(brokers=4)
    assert outcome(upstream, replicas=wanted) == PARTITIONS
    (request,) = upstream.made
    assert request.topics[0].replication_factor == made


def test_the_largest_batch_is_as_configured() -> None:
    upstream = Upstream(partitions=1)
    limit = DescribeConfigsResourceResult(name="max.message.bytes", value="9000")
    upstream.configured = DescribeConfigsResult(error_message=None, configs=(limit,))
    assert result(Deferred.fromCoroutine(max_message_bytes(upstream.ask, TOPIC))) == 9000


def test_without_the_right_to_ask_kafkas_default_counts() -> None:
    upstream = Upstream(partitions=1)
    refused = DescribeConfigsResult(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="no")
    upstream.configured = refused
    assert result(Deferred.fromCoroutine(max_message_bytes(upstream.ask, TOPIC))) == DEFAULT_BYTES
