"""A cluster of one broker that is played by hand, and when a client stops trying again."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kshim.client.cluster import MOST_UNANSWERED, Cluster
from kshim.client.faults import Unanswered
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.client.broker import PlayedBroker


def test_a_broker_that_closes_each_connection_without_an_answer_is_not_asked_for_long() -> None:
    """As a listener does where a login is missing. It answers ApiVersions, also without one."""
    with PlayedBroker({ApiKey.METADATA: lambda header, request: None}) as broker:
        with Cluster(broker.settings()) as cluster, pytest.raises(Unanswered, match=r"security\.protocol"):
            cluster.topics()
        assert len(broker.requests) == MOST_UNANSWERED


def test_a_broker_that_answers_later_is_asked_again() -> None:
    tries = count(1)

    def answer(header: Any, request: Any) -> MetadataResponse | None:
        return None if next(tries) < MOST_UNANSWERED else MetadataResponse(controller_id=1)

    with PlayedBroker({ApiKey.METADATA: answer}) as broker, Cluster(broker.settings()) as cluster:
        assert cluster.topics() == []


def test_a_topic_that_appears_meanwhile_is_asked_for_again() -> None:
    """One answer says that the topic is unknown, and the next, with all names, that it is there."""
    tries = count(1)

    def answer(header: Any, request: Any) -> MetadataResponse:
        is_known = next(tries) > 1
        error = ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponse(topics=(MetadataResponseTopic(error_code=error, name="new"),))

    with PlayedBroker({ApiKey.METADATA: answer}) as broker, Cluster(broker.settings()) as cluster:
        assert cluster.topic("new").name == "new"
