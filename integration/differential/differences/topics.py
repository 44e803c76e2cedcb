"""Differences of topics, their configs and the brokers' configs."""

from __future__ import annotations

from integration.differential.differences.configs import (
    LOGGER,
    TOPIC,
    described_config,
    described_configs,
)
from integration.differential.differences.guest import Guest
from integration.differential.differences.member import coordinated
from integration.differential.differences.partitions import delete_records, stored_bytes
from integration.differential.differences.scenario import difference
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA, CREATE_TOPICS, CREATE_PARTITIONS, LOG_DIRS = 12, 7, 3, 4


@difference("D-auto-creation", apache_kafka="UNKNOWN_TOPIC_OR_PARTITION", kshim="NONE")
def metadata_of_a_topic_that_is_made_when_asked_for(guest: Guest) -> str:
    topic = MetadataRequestTopic(name=guest.name("t"))
    return guest.error(METADATA, MetadataRequest(topics=(topic,), allow_auto_topic_creation=True))


@difference("D-offsets-topic", apache_kafka="NONE", kshim="POLICY_VIOLATION")
def enlarging_the_offsets_topic(guest: Guest) -> str:
    coordinated(guest)
    return enlarged(guest, "__consumer_offsets")


def enlarged(guest: Guest, topic: str, count: int = 60) -> str:
    topics = (CreatePartitionsTopic(name=topic, count=count, assignments=None),)
    request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=True)
    return guest.error(CREATE_PARTITIONS, request)


@difference("D-no-time-for-admins", apache_kafka="REQUEST_TIMED_OUT", kshim="NONE")
def a_topic_is_made_in_no_time(guest: Guest) -> str:
    topic = CreatableTopic(name=guest.name("t"), num_partitions=1, replication_factor=1)
    return guest.error(CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=0))


@difference("D-topic-configs-without-effect", apache_kafka=False, kshim=True)
def whether_segment_ms_is_said_to_have_no_effect(guest: Guest) -> bool:
    guest.create("t")
    return "no effect" in described_configs(guest, TOPIC, guest.name("t"))["segment.ms"].documentation


@difference("D-broker-configs-without-effect", apache_kafka=False, kshim=True)
def whether_log_segment_bytes_is_said_to_have_no_effect(guest: Guest) -> bool:
    return "no effect" in described_config(guest, "log.segment.bytes").documentation


@difference("D-loggers", apache_kafka={"root", "org"}, kshim={"root", "kshim"})
def roots_of_its_own_loggers(guest: Guest) -> set[str]:
    names = {name.partition(".")[0] for name in described_configs(guest, LOGGER, "1")}
    return names & {"root", "org", "kafka", "kshim"}


@difference("D-log-dir-sizes", apache_kafka=3, kshim=1)
def batches_that_are_counted_after_two_were_deleted(guest: Guest) -> int:
    guest.create("t")
    for _ in range(3):
        guest.produce("t")
    one = stored_bytes(guest, "t", 2)
    delete_records(guest, "t", 2)
    topic = DescribableLogDirTopic(topic=guest.name("t"), partitions=(0,))
    (result,) = guest.answer(LOG_DIRS, DescribeLogDirsRequest(topics=(topic,))).results
    return int(result.topics[0].partitions[0].partition_size / one)


@difference("D-initial-delay", apache_kafka="3000", kshim="0")
def the_initial_delay_that_nobody_has_set(guest: Guest) -> str:
    config = described_config(guest, "group.initial.rebalance.delay.ms")
    return str(config.synonyms[-1].value)
