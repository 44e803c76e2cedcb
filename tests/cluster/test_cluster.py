"""The cluster over a store: what exists after the first start, and after later ones."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import fail

from kshim.cluster import Cluster, NewTopic, Refusal, Topic, leaders
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation, ResourceType
from kshim.cluster.leaders import stop_broker
from kshim.cluster.names import MetricNames, fault_in_name
from kshim.cluster.topics import Partition, decode_topic, encode_topic, new_topic_id, uuid_text
from kshim.configs.config import Config
from kshim.storage.interfaces import Cleanup, Compaction, Retention, StorageError
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from tests.api.harness import PENDING, HeldStore, batch, result


def start(store: Any, **config: Any) -> Cluster:
    cluster = Cluster(store.metadata, store.log, Config(**config))
    assert result(cluster.start()) is None
    return cluster


def make(cluster: Cluster, name: str, partitions: int = 1, **configs: str) -> Topic:
    outcome = result(cluster.create_topics([NewTopic(name, num_partitions=partitions, configs=configs)]))
    made = outcome[name]
    assert isinstance(made, Topic), made
    return made


# ---- the first start


def test_the_first_start_makes_a_cluster_id_and_the_internal_topic() -> None:
    """[125]"""
    cluster = start(MemoryStore(), node_id=3, offsets_topic_num_partitions=7)
    assert len(base64.urlsafe_b64decode(cluster.cluster_id + "==")) == 16
    assert (cluster.node_ids, cluster.controller_id) == ((3,), 3)
    internal = cluster.group_metadata_topic
    assert internal is cluster.topics["__consumer_offsets"]
    assert internal.is_internal
    assert internal.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert internal.partitions == tuple(
        Partition(index, index, leader=3, leader_epoch=0, replicas=(3,), isr=(3,)) for index in range(7)
    )


def test_nothing_is_shown_before_it_is_durable() -> None:
    store = HeldStore()
    cluster = Cluster(store.metadata, store.log, Config())
    started = cluster.start()
    assert (cluster.topics, cluster.cluster_id) == ({}, "")
    store.release_all()
    assert result(started) is None
    assert set(cluster.topics) == {"__consumer_offsets"}


def test_compacted_topics_are_compacted_with_their_own_configs_or_the_brokers() -> None:
    store = MemoryStore()
    asked: dict[int, Cleanup] = {}
    store.log.configure = asked.__setitem__
    configs: dict[str, Any] = {"offsets_topic_num_partitions": 2, "log_cleaner_min_cleanable_ratio": 0.25}
    cluster = start(store, **configs)
    make(cluster, "deleted")
    own = {"cleanup.policy": "compact,delete", "delete.retention.ms": "5", "min.cleanable.dirty.ratio": "0.1"}
    own["min.compaction.lag.ms"] = "7"
    made = make(cluster, "compacted", **own)
    result(cluster.add_partitions("compacted", 2))
    wanted = {n: Cleanup(compaction=Compaction(86400000, 0.25)) for n in range(2)} | {
        2: Cleanup(retention=Retention())
    }
    both = Cleanup(Compaction(5, 0.1, 7), Retention())
    wanted |= {made.partitions[0].partition_no + n: both for n in range(2)}
    assert asked == wanted
    asked.clear()
    start(store, **configs)
    assert asked == wanted


# ---- later starts


def test_a_restart_changes_nothing() -> None:
    store = MemoryStore()
    first = start(store)
    make(first, "a", 3, **{"retention.ms": "5"})
    assert result(first.add_partitions("a", 5)) is None
    make(first, "b")
    second = start(store)
    assert second.cluster_id == first.cluster_id
    assert second.topics == first.topics
    assert second.topic_by_id(first.topics["a"].topic_id) == first.topics["a"]


def test_the_partitions_of_the_internal_topic_are_those_of_the_first_start() -> None:
    store = MemoryStore()
    start(store)
    assert len(start(store, offsets_topic_num_partitions=9).group_metadata_topic.partitions) == 50


def test_partition_numbers_are_never_used_again() -> None:
    store = MemoryStore()
    cluster = start(store)
    last = make(cluster, "a", 2).partitions[-1].partition_no
    assert result(cluster.delete_topics([cluster.topics["a"]])) is not PENDING
    assert make(cluster, "a").partitions[0].partition_no == last + 1
    assert make(start(store), "b").partitions[0].partition_no == last + 2


def test_producer_ids_are_never_given_again() -> None:
    store = MemoryStore()
    given = [result(start(store).producer_ids.new()) for _ in range(3)]
    cluster = start(store)
    given += [result(cluster.producer_ids.new()) for _ in range(1500)]
    assert len(set(given)) == len(given)


def test_records_of_a_topic_whose_deletion_a_crash_interrupted_are_deleted_at_the_next_start() -> None:
    store = HeldStore()
    cluster = Cluster(store.metadata, store.log, Config())
    cluster.start()
    store.release_all()
    made = cluster.auto_create_topics(["a"])
    store.release_all()
    topic = result(made)["a"]
    partition_no = topic.partitions[0].partition_no
    store.log.append(partition_no, batch(), now_ms=1)
    store.release_all()

    cluster.delete_topics([topic])
    deletion = store.writes.pop(0)
    deletion.write()  # durable just before the crash
    assert store.log.offsets(partition_no).log_end_offset == 1

    again = Cluster(store.metadata, store.log, Config())
    again.start()
    store.release_all()
    assert "a" not in again.topics
    assert store.log.offsets(partition_no).log_end_offset == 0
    assert list(store.metadata.items(b"deleted_partition/")) == []


# ---- changes at the same time


def test_a_deletion_is_not_undone_by_partitions_that_were_on_their_way() -> None:
    store = HeldStore()
    cluster = Cluster(store.metadata, store.log, Config())
    cluster.start()
    store.release_all()
    cluster.auto_create_topics(["a"])
    store.release_all()
    deleted = cluster.delete_topics([cluster.topics["a"]])
    grown = cluster.add_partitions("a", 5)
    store.release_all()
    assert list(result(deleted).values()) == [None]
    assert result(grown).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "a" not in cluster.topics
    assert store.metadata.get(b"topic/a") is None


def test_many_topics_are_one_write() -> None:
    store = HeldStore()
    cluster = Cluster(store.metadata, store.log, Config())
    cluster.start()
    store.release_all()
    outcome = cluster.create_topics([NewTopic(f"t{number}") for number in range(100)])
    assert len(store.writes) == 1
    store.release()
    assert not any(isinstance(made, Refusal) for made in result(outcome).values())


# ---- values


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "one or more characters other than"),
        ("a\n", "one or more characters other than"),
        ("ä", "one or more characters other than"),
    ],
)
def test_names_that_are_refused(name: str, words: str) -> None:
    assert words in (fault_in_name(name) or "")


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "x" * 249, "__consumer_offsets"])
def test_names_that_are_good(name: str) -> None:
    assert fault_in_name(name) is None


def test_names_collide_if_they_differ_in_dots_and_underscores_only() -> None:
    assert MetricNames(["x", "a.b"]).colliding("a_b") == "a.b"
    known = MetricNames(["a.b", "ab", "a-b", "a.c"])
    assert known.colliding("a.b") is None
    assert known.colliding("a_c") == "a.c"
    known.discard("a.c")
    assert known.colliding("a_c") is None


def test_reserved_and_awkward_topic_ids_are_not_given() -> None:
    dashed = UUID(bytes=base64.urlsafe_b64decode("-" + "A" * 21 + "=="))
    drawn = iter([UUID(int=0), UUID(int=1), dashed, UUID(int=77)])
    assert new_topic_id(lambda: next(drawn)) == UUID(int=77)
    assert uuid_text(UUID(int=77)) == "AAAAAAAAAAAAAAAAAAAATQ"


def test_a_topic_is_read_as_it_was_written() -> None:
    topic = Topic(
        "t", UUID(int=5), (Partition(0, 9, 1, 4), Partition(1, 7, 2, 0)), {"a.b": "c"}, is_internal=True
    )
    assert decode_topic("t", encode_topic(topic)) == topic
    assert topic.partition(1) == Partition(1, 7, 2, 0)
    assert topic.partition(2) is None
    assert topic.partition(-1) is None


# ---- several brokers


def test_leaders_go_round_the_brokers_and_on_where_partitions_are_added() -> None:
    cluster = start(MemoryStore(), brokers=3)
    assert (cluster.node_ids, cluster.running, cluster.controller_id) == ((1, 2, 3), (1, 2, 3), 1)
    internal = cluster.group_metadata_topic.partitions
    assert [p.leader for p in internal[:4]] == [1, 2, 3, 1]
    assert {len(p.replicas) for p in internal} == {3}
    first = make(cluster, "a", 2).partitions
    assert result(cluster.add_partitions("a", 4)) is None
    nodes = [p.leader for p in cluster.topics["a"].partitions]
    assert [(node - nodes[0]) % 3 for node in nodes] == [0, 1, 2, 0]
    assert cluster.topics["a"].partitions[:2] == first


def test_the_number_of_brokers_may_be_another_at_each_start() -> None:
    store = MemoryStore()
    three = start(store, brokers=3, default_replication_factor=2)
    made = make(three, "a", 6)
    assert {p.leader for p in made.partitions} == {1, 2, 3}
    one = start(store)
    assert {(p.leader, p.replicas, p.isr) for p in one.topics["a"].partitions} == {(1, (1,), (1,))}
    again = start(store, brokers=3)
    assert again.topics["a"].partitions == one.topics["a"].partitions


def test_new_partitions_go_to_brokers_that_run() -> None:
    cluster = start(MemoryStore(), brokers=3, default_replication_factor=2)
    result(leaders.stop_broker(cluster, 2))
    made = make(cluster, "a", 3)
    assert {node for p in made.partitions for node in p.replicas} == {1, 3}
    full = result(cluster.create_topics([NewTopic("b", replication_factor=3)]))["b"]
    assert isinstance(full, Topic)
    assert (len(full.partitions[0].replicas), set(full.partitions[0].isr)) == (3, {1, 3})
    wanted = NewTopic("c", assignments=[(0, [1]), (1, [2])])
    refused = result(cluster.create_topics([wanted]))["c"]
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_watchers_of_leaders_are_told_only_of_moves() -> None:
    cluster = start(MemoryStore(), brokers=3, default_replication_factor=3)
    make(cluster, "a", 1)
    seen: list[tuple[str, int, int]] = []
    unwatch = cluster.watch_leaders(
        lambda moves: seen.extend((move.topic.name, move.before.leader, move.after.leader) for move in moves)
    )
    (only,) = cluster.topics["a"].partitions
    other = only.replicas[1]
    result(leaders.move_leader(cluster, ("a", 0), other))
    result(leaders.move_leader(cluster, ("a", 0), other))
    assert seen == [("a", only.leader, other)]
    unwatch()
    result(leaders.move_leader(cluster, ("a", 0), only.leader))
    assert len(seen) == 1


def test_a_move_that_cannot_be_stored_is_not_seen() -> None:
    store = MemoryStore()
    cluster = start(store, brokers=2, default_replication_factor=2)
    before = make(cluster, "a")
    seen: list[Any] = []
    cluster.watch_leaders(seen.extend)
    store.metadata.put = lambda changes: fail(StorageError("full"))
    with pytest.raises(StorageError):
        result(leaders.stop_broker(cluster, 1))
    assert (cluster.topics["a"], cluster.running, seen) == (before, (1, 2), [])


def test_what_a_version_with_one_broker_stored_is_read() -> None:
    stored = (
        b'{"topic_id": "00000000-0000-0000-0000-000000000007", "is_internal": false, "configs": {},'
        b' "partitions": [[4, 1, 2]]}'
    )
    (partition,) = decode_topic("a", stored).partitions
    assert partition == Partition(0, 4, leader=1, leader_epoch=2, replicas=(1,), isr=(1,))


def test_the_broker_that_leads_gives_a_partition_its_defaults() -> None:
    store = MemoryStore()
    asked: dict[int, Cleanup] = {}
    store.log.configure = asked.__setitem__
    cluster = start(store, brokers=2, offsets_topic_num_partitions=1)
    assignments = [(0, (1, 2)), (1, (2, 1))]
    result(cluster.create_topics([NewTopic("t", assignments=assignments)]))
    first, second = cluster.topics["t"].partitions
    operation = ConfigOperation("log.retention.ms", Operation.SET, "5")
    change = ConfigChange(ResourceType.BROKER, "2", (operation,))
    assert result(cluster.alter_configs([change], 2)) == [None]
    assert asked[first.partition_no] == Cleanup(retention=Retention())
    assert asked[second.partition_no] == Cleanup(retention=Retention(retention_ms=5))
    result(stop_broker(cluster, 2))
    assert asked[second.partition_no] == Cleanup(retention=Retention())
