"""Groups of the consumer protocol, served by kshim or passed on to the upstream: a user sees the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from integration.support import java_member
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end, set_options
from integration.support.story import LIBRDKAFKA, telling
from integration.upstream.committer import Committer

SERVED, PASSED = "classic,consumer", "classic"
PARTITIONS, RECORDS, ANSWER_S, WITHIN_S = 2, 20, 30, 90


def in_front(kafka: Server, data_dir: Path, protocols: str, name: str) -> Server:
    """kshim. name: of its topic and its group, which processes that share groups have in common."""
    properties = {
        "upstream.groups.protocols": protocols,
        "upstream.groups.topic": name,
        "upstream.groups.group.id": name,
    }
    return Server(data_dir, ["--upstream", kafka.bootstrap, *set_options(properties)])


@pytest.fixture(scope="module")
def passing(kafka: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = in_front(kafka, tmp_path_factory.mktemp("passing") / "data", PASSED, "passing").start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def serving(kafka: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = in_front(kafka, tmp_path_factory.mktemp("serving") / "data", SERVED, "serving").start()
    yield server
    server.kill()


@pytest.fixture
def admin(kafka: Server) -> Iterator[Admin]:
    """Looks at the upstream itself."""
    with contextlib.closing(Admin(kafka.bootstrap)) as admin:
        yield admin


@pytest.fixture
def made(topic: str, admin: Admin, kafka: Server) -> str:
    """A topic with RECORDS records."""
    admin.create_topic(topic, PARTITIONS)
    produce(kafka, topic, range(RECORDS))
    return topic


def produce(kafka: Server, topic: str, numbers: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(WITHIN_S) == 0


@contextlib.contextmanager
def consuming(servers: Sequence[Server], group_id: str, protocol: str, topic: str) -> Iterator[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(each.bootstrap for each in servers),
            "group.id": group_id,
            "group.protocol": protocol,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Any, count: int) -> list[int]:
    """Read so many records, and commit behind the last one of each partition."""
    found: list[int] = []
    ends: dict[int, int] = {}

    def is_done() -> bool:
        for message in consumer.consume(count - len(found), 0.2):
            assert not message.error(), message.error()
            found.append(int(message.value()))
            ends[message.partition()] = message.offset() + 1
        return len(found) == count

    wait_until(is_done, WITHIN_S, lambda: f"{count} records, have {len(found)}")
    (topic,) = {each.topic for each in consumer.assignment()}
    consumer.commit(
        offsets=[TopicPartition(topic, index, end) for index, end in ends.items()], asynchronous=False
    )
    return sorted(found)


# ---- the same, served and passed on


@pytest.mark.parametrize("program", ["librdkafka", "java"])
@pytest.mark.parametrize("protocols", [SERVED, PASSED])
def test_members_share_a_topic(
    request: pytest.FixtureRequest,
    topic: str,
    tmp_path: Path,
    protocols: str,
    program: str,
    class_path: str,
    admin: Admin,
) -> None:
    """No record is missed or read twice, and at the end the upstream has the group's offsets."""
    kshim: Server = request.getfixturevalue("passing" if protocols == PASSED else "serving")
    command = LIBRDKAFKA if program == "librdkafka" else java_member.command(class_path)
    with telling(kshim.bootstrap, topic, 6, "range", tmp_path, protocol="consumer") as story:
        first, second = story.join("first", command), story.join("second", command)
        story.wait_shared(first, second, timeout_s=WITHIN_S)
        story.wait_consumed(WITHIN_S)
        second.leave()
        story.wait_shared(first, timeout_s=WITHIN_S)
        story.wait_consumed(WITHIN_S)
        groups = Path(kshim.data_dir.parent)
        listed = run_to_end("groups", "--data-dir", str(kshim.data_dir), cwd=groups).stdout
        assert (story.group_id in listed) is (protocols == SERVED), "kshim's own group"
        wait_until(
            lambda: set(admin.group_offsets(story.group_id)) == {(topic, each) for each in range(6)},
            ANSWER_S,
            "an offset of each partition at the upstream",
        )


class Seen:
    """The answers that an administrator gets about one group."""

    def __init__(self, kshim: Server, group_id: str, topic: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": kshim.bootstrap})
        self._group_id, self._topic = group_id, topic

    def describe(self) -> tuple[object, ...]:
        def described() -> Any:
            return self._of(self._admin.describe_consumer_groups)

        found = described()
        members = sorted(
            (each.client_id, sorted(p.partition for p in each.assignment.topic_partitions))
            for each in found.members
        )
        return found.type, found.state, found.is_simple_consumer_group, found.partition_assignor, members

    def list(self) -> list[tuple[object, ...]]:
        """The group in answers to all groups, to those of the protocol, and to classic ones."""
        filters: list[set[ConsumerGroupType]] = [
            set(),
            {ConsumerGroupType.CONSUMER},
            {ConsumerGroupType.CLASSIC},
        ]
        found = []
        for types in filters:
            listed = self._admin.list_consumer_groups(types=types, request_timeout=ANSWER_S).result()
            assert not listed.errors
            found += [
                (len(types), each.state, each.type)
                for each in listed.valid
                if each.group_id == self._group_id
            ]
        return found

    def offsets(self) -> dict[int, int]:
        asked = [ConsumerGroupTopicPartitions(self._group_id)]
        (found,) = self._admin.list_consumer_group_offsets(asked).values()
        return {each.partition: each.offset for each in found.result().topic_partitions}

    def reset(self, offset: int) -> object:
        asked = ConsumerGroupTopicPartitions(self._group_id, [TopicPartition(self._topic, 0, offset)])
        (found,) = self._admin.alter_consumer_group_offsets([asked]).values()
        return failure(lambda: found.result().topic_partitions[0].error)

    def delete(self) -> object:
        return failure(lambda: self._of(self._admin.delete_consumer_groups))

    def _of(self, call: Any) -> Any:
        return call([self._group_id], request_timeout=ANSWER_S)[self._group_id].result()


def failure(call: Callable[[], object]) -> object:
    """The name of the error with which a call fails, or its result."""
    try:
        return call()
    except KafkaException as error:
        return error.args[0].name()


def all_that_is_seen(kshim: Server, group_id: str, topic: str) -> list[object]:
    seen = Seen(kshim, group_id, topic)
    found: list[object] = []
    with consuming([kshim], group_id, "consumer", topic) as consumer:
        assert read(consumer, RECORDS) == list(range(RECORDS))
        wait_until(lambda: seen.describe()[1] == ConsumerGroupState.STABLE, WITHIN_S, "a stable group")
        found += [seen.describe(), seen.list(), seen.offsets(), seen.reset(3), seen.delete()]
    found += [seen.describe(), seen.list(), seen.offsets(), seen.reset(3), seen.offsets()]
    found += [seen.delete(), seen.list(), seen.delete()]
    return found


def test_an_administrator_sees_the_same(passing: Server, serving: Server, made: str) -> None:
    """Of a group with a member, without members, with another offset, and deleted."""
    assert all_that_is_seen(passing, f"passed-{made}", made) == all_that_is_seen(
        serving, f"served-{made}", made
    )


# ---- from one side to the other


def test_a_group_changes_its_protocol_and_back(kafka: Server, passing: Server, made: str) -> None:
    """It goes on where it was: from kshim to the upstream, and from there to kshim."""
    half, group_id = RECORDS // 2, f"group-{made}"
    with consuming([passing], group_id, "classic", made) as consumer:
        begun = read(consumer, half)
    with consuming([passing], group_id, "consumer", made) as consumer:
        assert sorted(begun + read(consumer, RECORDS - half)) == list(range(RECORDS))
    produce(kafka, made, range(RECORDS, RECORDS + half))
    with consuming([passing], group_id, "classic", made) as consumer:
        assert read(consumer, half) == list(range(RECORDS, RECORDS + half))
    log = "\n".join(passing.log)
    assert f"group {group_id} goes over to the upstream, which serves the consumer protocol" in log
    assert f"group {group_id} joins here: it goes on with {PARTITIONS} offsets" in log


@pytest.mark.parametrize(("first", "other"), [("classic", "consumer"), ("consumer", "classic")])
def test_a_group_has_members_at_one_side(passing: Server, made: str, first: str, other: str) -> None:
    """The member that comes second is refused, and the log says what to do."""
    group_id = f"group-{made}"
    with consuming([passing], group_id, first, made) as consumer:
        read(consumer, RECORDS // 2)
        with consuming([passing], group_id, other, made) as second:
            wait_until(
                lambda: (
                    second.poll(0.1)
                    or f"group {group_id} has members of the {first} protocol" in log(passing)
                ),
                WITHIN_S,
                "a line in the log",
            )
            assert not second.assignment()
        assert len(read(consumer, RECORDS - RECORDS // 2)) == RECORDS - RECORDS // 2


def log(server: Server) -> str:
    return "\n".join(server.log)


def test_a_transaction_commits_offsets_of_a_group_of_either_side(passing: Server, made: str) -> None:
    for protocol in ("consumer", "classic"):
        group_id = f"{protocol}-{made}"
        with consuming([passing], group_id, protocol, made) as consumer:
            producer = Producer({"bootstrap.servers": passing.bootstrap, "transactional.id": group_id})
            producer.init_transactions(WITHIN_S)
            wait_until(
                lambda consumer=consumer: consumer.poll(0.1) and consumer.assignment(), WITHIN_S, "records"
            )
            where = [TopicPartition(made, 0, 7)]
            for ends, expected in ((producer.commit_transaction, 7), (producer.abort_transaction, 7)):
                producer.begin_transaction()
                producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), WITHIN_S)
                ends(WITHIN_S)
                (found,) = consumer.committed([TopicPartition(made, 0)], WITHIN_S)
                assert found.offset == expected
                where = [TopicPartition(made, 0, 9)]


def test_a_member_that_is_passed_on_goes_on_at_another_kshim(
    kafka: Server, made: str, tmp_path: Path
) -> None:
    """The kshim by which it came is killed. Its group has the same epoch afterwards."""
    servers = [in_front(kafka, tmp_path / name, PASSED, f"two-{made}").start() for name in ("one", "two")]
    group_id = f"group-{made}"
    try:
        wait_until(lambda: all("2 kshim share them" in log(each) for each in servers), WITHIN_S, "two kshim")
        with consuming(servers, group_id, "consumer", made) as consumer:
            begun = read(consumer, RECORDS // 2)
            leader = Committer(servers, group_id, made).leader()
            assert leader is not None
            leader.kill()
            assert sorted(begun + read(consumer, RECORDS - RECORDS // 2)) == list(range(RECORDS))
            (found,) = consumer.committed([TopicPartition(made, 0)], WITHIN_S)
            assert found.offset == RECORDS // PARTITIONS
    finally:
        for each in servers:
            if each.running:
                each.kill()
