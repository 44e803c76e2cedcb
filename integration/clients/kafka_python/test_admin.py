"""Topics and groups by the admin client: create, grow, delete, list, describe."""

from __future__ import annotations

from contextlib import suppress

import pytest
from kafka import TopicPartition
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from integration.support.awaiting import wait_until
from integration.support.clients import (
    Admin,
    new_consumer,
    new_producer,
    offset_and_metadata,
    poll_records,
    read_all,
)
from integration.support.server import Server


def produce(server: Server, topic: str, count: int, partition: int = 0) -> None:
    producer = new_producer(server.bootstrap)
    futures = [producer.send(topic, str(n).encode(), partition=partition) for n in range(count)]
    assert [f.get(timeout=20).offset for f in futures]
    producer.close()


def test_a_topic_from_creation_to_deletion(server: Server, admin: Admin, topic: str) -> None:
    admin.create_topic(topic, 3)
    wait_until(lambda: sorted(admin.partitions(topic)) == [0, 1, 2], 10, "three partitions")
    assert len(set(admin.partitions(topic).values())) == 1
    assert topic in admin.list_topics()
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topic(topic, 3)

    produce(server, topic, 5, partition=2)
    admin.add_partitions(topic, 5)
    wait_until(lambda: sorted(admin.partitions(topic)) == [0, 1, 2, 3, 4], 10, "five partitions")
    with pytest.raises(InvalidPartitionsError):
        admin.add_partitions(topic, 4)
    produce(server, topic, 5, partition=4)
    assert len(read_all(server.bootstrap, topic, 10)) == 10

    admin.delete_topic(topic)
    wait_until(lambda: topic not in admin.list_topics(), 10, "the end of the topic")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topic(topic)


def test_a_topic_created_again_is_empty(server: Server, admin: Admin, topic: str) -> None:
    admin.create_topic(topic, 1)
    produce(server, topic, 5)
    admin.delete_topic(topic)
    wait_until(lambda: topic not in admin.list_topics(), 10, "the end of the topic")
    admin.create_topic(topic, 2)
    wait_until(lambda: len(admin.partitions(topic)) == 2, 10, "two partitions")
    consumer = new_consumer(server.bootstrap)
    partitions = [TopicPartition(topic, p) for p in (0, 1)]
    assert consumer.end_offsets(partitions) == dict.fromkeys(partitions, 0)
    consumer.close()
    produce(server, topic, 1)
    assert [r.offset for r in read_all(server.bootstrap, topic, 1)] == [0]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250])
def test_bad_topic_names(admin: Admin, name: str) -> None:
    with pytest.raises(InvalidTopicError):
        admin.create_topic(name)


def test_bad_topic_settings(admin: Admin, topic: str) -> None:
    with pytest.raises(InvalidPartitionsError):
        admin.create_topic(topic, 0)
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topic(topic, 1, replication_factor=9)
    with pytest.raises(PolicyViolationError):
        admin.create_topic(topic, 2**31 - 1)  # a number that somebody sent allocates no memory
    with pytest.raises(KafkaError):
        admin.create_topic(topic, 1, {"no.such.setting": "1"})
    assert topic not in admin.list_topics()


def test_a_config_that_is_changed_holds_at_once_and_after_a_kill(own_server: Server, topic: str) -> None:
    server = own_server
    admin = Admin(server.bootstrap)
    admin.create_topic(topic, 1, {"max.message.bytes": "500"})
    assert admin.configs(topic) == {"max.message.bytes": "500"}
    producer = new_producer(server.bootstrap)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, b"x" * 1000).get(timeout=20)
    producer.close()
    admin.set_configs(topic, {"max.message.bytes": "5000", "compression.type": "gzip"})
    producer = new_producer(server.bootstrap)  # 3.0's producer gives up for good, with any broker
    assert producer.send(topic, b"x" * 1000).get(timeout=20).offset == 0
    producer.close()
    admin.close()
    server.kill()
    server.restart()
    again = Admin(server.bootstrap)
    assert again.configs(topic) == {"max.message.bytes": "5000", "compression.type": "gzip"}
    again.close()
    assert [record.value for record in read_all(server.bootstrap, topic, 1)] == [b"x" * 1000]


def test_a_config_that_makes_no_sense(admin: Admin, topic: str) -> None:
    admin.create_topic(topic, 1, {"retention.ms": "5"})
    with suppress(KafkaError):  # 2.x does not check it
        admin.set_configs(topic, {"retention.ms": "soon"})
    assert admin.configs(topic) == {"retention.ms": "5"}


def test_a_group_from_first_member_to_deletion(server: Server, admin: Admin, topic: str) -> None:
    admin.create_topic(topic, 2)
    wait_until(lambda: len(admin.partitions(topic)) == 2, 10, "two partitions")
    produce(server, topic, 10)
    group_id = f"group-of-{topic}"
    consumer = new_consumer(server.bootstrap, topic, group_id=group_id, client_id="me")
    poll_records(consumer, 10)
    consumer.commit()
    assert admin.list_groups()[group_id] == "consumer"
    group = wait_until(
        lambda: (found := admin.describe_group(group_id)).state == "Stable" and found, 10, "a Stable group"
    )
    assert (group.group_id, group.protocol_type, group.protocol) == (group_id, "consumer", "range")
    (member,) = group.members
    assert member.member_id.startswith("me-")
    assert (member.client_id, member.client_host) == ("me", "/127.0.0.1")
    assert member.assignment == {(topic, 0), (topic, 1)}
    assert admin.group_offsets(group_id)[topic, 0] == 10
    assert admin.delete_group(group_id) == "NonEmptyGroup"

    consumer.close()
    group = admin.describe_group(group_id)
    assert (group.state, group.members) == ("Empty", ())
    assert admin.group_offsets(group_id)[topic, 0] == 10
    assert admin.delete_group(group_id) == "OK"
    assert group_id not in admin.list_groups()
    assert admin.group_offsets(group_id) == {}
    assert admin.delete_group(group_id) == "GroupIdNotFound"


def test_a_group_that_only_commits(server: Server, admin: Admin, topic: str) -> None:
    """assign() and commit() without subscribing make a simple group; metadata is kept with the offset."""
    admin.create_topic(topic, 2)
    wait_until(lambda: len(admin.partitions(topic)) == 2, 10, "two partitions")
    group_id = f"group-of-{topic}"
    consumer = new_consumer(server.bootstrap, group_id=group_id)
    partitions = [TopicPartition(topic, p) for p in (0, 1)]
    consumer.assign(partitions)
    assert consumer.committed(partitions[0]) is None
    consumer.commit({partitions[0]: offset_and_metadata(42, "noted"), partitions[1]: offset_and_metadata(0)})
    consumer.commit({partitions[0]: offset_and_metadata(7, "lower on purpose")})
    assert consumer.committed(partitions[0]) == 7
    consumer.close()

    consumer = new_consumer(server.bootstrap, group_id=group_id)
    assert consumer.committed(partitions[0]) == 7
    assert consumer.committed(partitions[0], metadata=True)[:2] == (7, "lower on purpose")
    assert consumer.committed(partitions[1]) == 0
    consumer.close()
    assert admin.group_offsets(group_id) == {(topic, 0): 7, (topic, 1): 0}
    assert admin.list_groups()[group_id] == ""


def test_an_unknown_group(admin: Admin, topic: str) -> None:
    assert admin.group_offsets(f"no-{topic}") == {}
    assert admin.delete_group(f"no-{topic}") == "GroupIdNotFound"
    assert f"no-{topic}" not in admin.list_groups()


def test_an_offset_out_of_a_simple_group_moves_where_a_member_starts(
    server: Server, admin: Admin, topic: str
) -> None:
    admin.create_topic(topic, 1)
    produce(server, topic, 10)
    group_id = f"group-of-{topic}"
    tool = new_consumer(server.bootstrap, group_id=group_id)
    tool.assign([TopicPartition(topic, 0)])
    tool.commit({TopicPartition(topic, 0): offset_and_metadata(6)})
    tool.close()
    consumer = new_consumer(server.bootstrap, topic, group_id=group_id)
    assert [r.offset for r in poll_records(consumer, 4)] == [6, 7, 8, 9]
    consumer.close()
