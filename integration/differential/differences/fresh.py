"""Differences of a server that has not been asked anything yet, or that was killed and started again."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

from integration.differential.differences.guest import Guest, soon
from integration.differential.differences.member import FIND
from integration.differential.differences.partitions import (
    PRODUCE,
    delete_records,
    offset,
    one,
    producing,
)
from integration.differential.differences.scenario import FRESH, difference
from integration.differential.differences.topics import METADATA
from integration.differential.stories.talk import AT_MS
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.metadata import MetadataRequest
from schemas.messages.unregister_broker import UnregisterBrokerRequest

DELETE_TOPICS = 6

Killed = Generator[None, None, object]


@difference("D-offsets-topic", apache_kafka=[], kshim=["__consumer_offsets"], pair=FRESH)
def topics_that_nobody_has_made(guest: Guest) -> list[str]:
    answer = guest.answer(METADATA, MetadataRequest(topics=None))
    return [topic.name for topic in answer.topics]


@difference("D-first-producer-id", apache_kafka="COORDINATOR_LOAD_IN_PROGRESS", kshim="NONE", pair=FRESH)
def the_first_producer_id(guest: Guest) -> str:
    return guest.error(4, InitProducerIdRequest(transactional_id=None))


@difference("D-first-transactional-id", apache_kafka="COORDINATOR_NOT_AVAILABLE", kshim="NONE", pair=FRESH)
def the_coordinator_of_the_first_transactional_id(guest: Guest) -> str:
    return guest.error(FIND, FindCoordinatorRequest(key="tx", key_type=1))


@difference("D-transactions-topic", apache_kafka="NONE", kshim="POLICY_VIOLATION", pair=FRESH)
def deleting_the_topic_of_transactions(guest: Guest) -> str:
    request = FindCoordinatorRequest(key="tx", key_type=1)
    assert soon(lambda: guest.error(FIND, request), "NONE") == "NONE"
    topics = (DeleteTopicState(name="__transaction_state"),)
    return guest.error(DELETE_TOPICS, DeleteTopicsRequest(topics=topics, timeout_ms=10_000))


@difference("D-internal-replicas", apache_kafka="COORDINATOR_NOT_AVAILABLE", kshim="NONE", pair=FRESH)
def a_coordinator_where_one_broker_has_to_keep_three_replicas(guest: Guest) -> Killed:
    guest.unheard(FIND, FindCoordinatorRequest(key="g"))
    yield
    return guest.error(FIND, FindCoordinatorRequest(key="g"))


@difference("D-log-start-after-crash", apache_kafka=0, kshim=1, pair=FRESH)
def the_log_start_offset_after_records_were_deleted(guest: Guest) -> Killed:
    guest.create("t")
    guest.produce("t")
    guest.produce("t")
    delete_records(guest, "t", 1)
    yield
    guest.wait_led("t")
    return offset(guest, "t")


@difference("D-batches-after-restart", apache_kafka="OUT_OF_ORDER_SEQUENCE_NUMBER", kshim="NONE", pair=FRESH)
def the_last_but_two_of_a_producers_batches_comes_again(guest: Guest) -> Killed:
    guest.create("t", segment_ms="1")

    def send(sequence: int) -> str:
        batch = one(producer_id=4711, producer_epoch=0, base_sequence=sequence)
        return guest.error(PRODUCE, producing(guest, "t", batch))

    assert [send(sequence) for sequence in range(4)] == ["NONE"] * 4
    guest.produce("t", at_ms=AT_MS + 1000)  # a new segment, and so a snapshot
    yield
    guest.wait_led("t")
    return send(1)


@difference("D-first-look-for-retention", apache_kafka=0, kshim=1, pair=FRESH)
def the_log_start_offset_just_after_a_start(guest: Guest) -> Killed:
    guest.create("t", retention_ms="1000")
    guest.produce("t")
    yield
    guest.wait_led("t")
    return soon(partial(offset, guest, "t"), 1)


@difference("D-unregister-a-running-broker", apache_kafka=[], kshim=[1], pair=FRESH)
def brokers_after_one_that_runs_was_unregistered(guest: Guest) -> list[int]:
    """The last scenario before the servers are killed: nothing that is asked for later is led any more."""
    guest.answer(0, UnregisterBrokerRequest(broker_id=1))

    def brokers() -> list[int]:
        return [each.broker_id for each in guest.answer(0, DescribeClusterRequest()).brokers]

    return soon(brokers, [])
