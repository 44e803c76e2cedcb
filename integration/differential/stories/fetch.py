"""Stories about Fetch, ListOffsets and OffsetForLeaderEpoch: every public function here is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from integration.differential.stories.talk import AT_MS, NO_ID, Talk
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.fetch import ReplicaState
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode

VERSIONS = (7, 11, 12, 13, 18)
UNKNOWN_ID = UUID(int=4711)
COMMITTED = 1


def sessions_answer_only_what_changed(talk: Talk) -> None:
    talk.create("t", 4)
    talk.produce("t", 0)
    for version in VERSIONS:
        wanted = [("t", index, 0) for index in range(4)]
        id = talk.fetch(version, *wanted, session=(0, 0)).session_id
        talk.fetch(version, session=(id, 1))  # partition 0 again: its position has not moved
        talk.fetch(version, ("t", 0, 1), session=(id, 2))
        talk.fetch(version, session=(id, 3))
        talk.produce("t", 2)
        talk.fetch(version, session=(id, 4))
        talk.fetch(version, session=(id, 5))
        talk.fetch(version, ("t", 2, 99), session=(id, 6))
        talk.fetch(version, session=(id, 7))  # an error is repeated in each answer
        talk.fetch(version, ("t", 2, 1), session=(id, 8))
        talk.fetch(version, session=(id, 9))
        talk.fetch(version, forget=(("t", 0), ("t", 1)), session=(id, 10))
        talk.fetch(version, ("t", 0, 0), session=(id, 11))
        talk.fetch(version, forget=(("t", 0), ("t", 2), ("t", 3)), session=(id, 12))
        talk.fetch(version, session=(id, 13))
        talk.delete("t")
        talk.create("t", 4)
        talk.produce("t", 0)


def epochs_and_ids_of_sessions(talk: Talk) -> None:
    talk.create("t", 2)
    talk.produce("t", 0)
    for version in VERSIONS:
        id = talk.fetch(version, ("t", 0, 0), ("t", 1, 0), session=(0, 0)).session_id
        talk.fetch(version, session=(id, 2))
        talk.fetch(version, session=(id, 1))
        talk.fetch(version, session=(id, 1))
        talk.fetch(version, session=(id, 2))
        talk.fetch(version, session=(id % 2**31 + 1, 3))
        talk.fetch(version, session=(0, 3))
        talk.fetch(version, session=(-5, 3))
        talk.fetch(version, session=(id, -2))
        talk.fetch(version, session=(id, 2147483647))
        again = talk.fetch(version, ("t", 1, 0), session=(id, 0)).session_id  # this closes the old one
        talk.fetch(version, session=(id, 3))
        talk.fetch(version, session=(again, 1))
        talk.fetch(version, ("t", 0, 0), session=(again, -1))
        talk.fetch(version, session=(again, 2))
        talk.fetch(version, ("t", 0, 0), session=(again, -1))
        talk.fetch(version, session=(0, 0))
        talk.fetch(version, session=(0, -1))
        empty = talk.fetch(version, session=(0, 0)).session_id
        talk.fetch(version, session=(empty, 1))
        empty = talk.fetch(version, session=(0, 0)).session_id
        talk.fetch(version, ("t", 0, 0), session=(empty, 1))
        talk.fetch(version, ("t", 0, 0), session=(empty, 2), forget=(("t", 0),))


def a_session_is_by_name_or_by_id(talk: Talk) -> None:
    talk.create("t", 1)
    talk.produce("t", 0)
    id = talk.fetch(12, ("t", 0, 0), session=(0, 0)).session_id
    talk.fetch(13, session=(id, 1))
    talk.fetch(12, session=(id, 1))
    id = talk.fetch(13, ("t", 0, 0), session=(0, 0)).session_id
    talk.fetch(12, session=(id, 1))
    talk.fetch(13, session=(id, 2))
    talk.fetch(18, session=(id, 1))


def partitions_of_a_session_take_turns(talk: Talk) -> None:
    talk.create("t", 5)
    for index in range(5):
        for _ in range(5):
            talk.produce("t", index, size=500)
    for version in (12, 13):
        wanted = [("t", index, 0) for index in range(5)]
        id = talk.fetch(version, *wanted, session=(0, 0), max_bytes=1400).session_id
        for epoch in range(1, 8):
            talk.fetch(version, session=(id, epoch), max_bytes=1400)
        id = talk.fetch(version, *wanted, session=(0, 0), max_bytes=1).session_id
        for epoch in range(1, 8):
            talk.fetch(version, session=(id, epoch), max_bytes=1)
        talk.fetch(version, ("t", 1, 2), session=(id, 8), max_bytes=1)
        talk.fetch(version, ("t", 4, 9), ("t", 1, 2), session=(id, 9), max_bytes=1)


def unknown_topics_in_sessions(talk: Talk) -> None:
    talk.create("t", 2)
    talk.produce("t", 0)
    for version in (12, 13, 17):
        wanted = [("late", 0, 0), ("t", 0, 0), ("t", 7, 0), (UNKNOWN_ID, 0, 0), ("t", 1, 0)]
        id = talk.fetch(version, *wanted, session=(0, 0)).session_id
        talk.fetch(version, session=(id, 1))
        talk.create("late", 1)
        talk.fetch(version, session=(id, 2))
        talk.fetch(version, ("late", 0, 0), session=(id, 3))
        talk.fetch(version, session=(id, 4))
        talk.delete("late")
        talk.fetch(version, session=(id, 5))
        talk.fetch(version, session=(id, 6))
        talk.create("late", 1)
        talk.fetch(version, session=(id, 7))
        talk.fetch(version, session=(id, 8))
        talk.fetch(version, ("late", 0, 0), session=(id, 9))
        talk.delete("late")
        talk.topic_ids.pop("late")


def a_topic_is_made_again(talk: Talk) -> None:
    for version in (12, 13, 18):
        talk.create("t", 2)
        talk.produce("t", 0)
        old = talk.topic_ids["t"]
        wanted = [(old if version > 12 else "t", 0, 0), ("t", 1, 0)]
        id = talk.fetch(version, *wanted, session=(0, 0)).session_id
        talk.delete("t")
        talk.fetch(version, session=(id, 1))
        talk.create("t", 2)
        talk.fetch(version, session=(id, 2))
        talk.fetch(version, ("t", 0, 0), session=(id, 3))
        talk.fetch(version, (old, 0, 0), session=(0, 0))
        talk.fetch(version, (old, 0, 0), session=(0, -1))
        talk.delete("t")


def parked_in_a_session(talk: Talk) -> None:
    talk.create("t", 3)
    for version in (12, 13):
        id = talk.fetch(version, *[("t", index, 0) for index in range(3)], session=(0, 0)).session_id
        quiet = talk.fetching(version=version, session=(id, 1), max_wait_ms=200)
        talk.ask(version, quiet)
        talk.send(version, talk.fetching(version=version, session=(id, 2), max_wait_ms=8000))
        talk.produce("t", 1)
        talk.hear(version, ApiKey.FETCH)
        # a second request of the session overtakes the first
        request = talk.fetching((("t", 1, 1),), version=version, session=(id, 3), max_wait_ms=1000)
        talk.send(version, request)
        other = talk.fetching(version=version, session=(id, 4), max_wait_ms=2000)
        talk.rest()
        talk.send(version, other, via="other")
        talk.hear(version, ApiKey.FETCH)
        talk.hear(version, ApiKey.FETCH, via="other")
        talk.delete("t")
        talk.create("t", 3)


def a_topic_goes_while_it_is_waited_for(talk: Talk) -> None:
    for version in (12, 13, 18):
        for session in ((0, -1), (0, 0)):
            talk.create("t", 1)
            wanted = (("t", 0, 0),)
            request = talk.fetching(wanted, version=version, session=session, max_wait_ms=9000)
            talk.send(version, request)
            talk.rest()
            talk.delete("t")
            talk.hear(version, ApiKey.FETCH)


def order_and_grouping_of_the_answer(talk: Talk) -> None:
    talk.create("a", 3)
    talk.create("b", 3)
    talk.produce("a", 1)
    for version in (7, 12, 13, 18):
        mixed = [("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("a", 9, 0), ("b", 1, 7), ("none", 0, 0), ("b", 2, 0)]
        talk.fetch(version, *mixed)
        talk.fetch(version, *mixed, session=(0, 0))
        talk.fetch(version, ("a", 0, 0), ("b", 0, 0), ("a", 0, 5), ("b", 0, 0))


def offsets_and_epochs_out_of_range(talk: Talk) -> None:
    talk.create("t", 2)
    for _ in range(3):
        talk.produce("t", 0)
    for version in (4, 9, 11, 12, 13, 18):
        for offset in (-1, 0, 2, 3, 4, 99, -2, 2**63 - 1):
            talk.fetch(version, ("t", 0, offset))
            talk.fetch(version, ("t", 1, offset), isolation_level=1)
    for version in (9, 12, 16, 18):
        for epoch in (-2, -1, 0, 1, 77):
            talk.fetch(version, ("t", 0, 1, {"current_leader_epoch": epoch}))
            talk.fetch(version, ("t", 0, 99, {"current_leader_epoch": epoch}))
    for version in (12, 18):
        for last in (-2, -1, 0, 1, 5):
            for offset in (-1, 0, 3, 4, 99):
                talk.fetch(version, ("t", 0, offset, {"last_fetched_epoch": last}))
                talk.fetch(version, ("t", 0, offset, {"last_fetched_epoch": last}), isolation_level=COMMITTED)
                talk.fetch(version, ("t", 1, offset, {"last_fetched_epoch": last, "current_leader_epoch": 0}))


def sizes(talk: Talk) -> None:
    talk.create("t", 3)
    for index in range(3):
        for _ in range(4):
            talk.produce("t", index, size=1000)
    wanted = [("t", index, 0) for index in range(3)]
    for version in (4, 12, 18):
        for max_bytes in (-1, 0, 1, 1100, 2200, 4000, 10_000):
            talk.fetch(version, *wanted, max_bytes=max_bytes)
            talk.fetch(version, *wanted, partition_max_bytes=max_bytes)
            talk.fetch(version, ("t", 0, 4), *wanted[1:], partition_max_bytes=max_bytes, max_bytes=1100)
        for isolation_level in (1, 2, -1):
            talk.fetch(version, *wanted, isolation_level=isolation_level, max_bytes=5000)
        for max_bytes in (0, 1, 5000):  # not 1100: Kafka would cut a batch
            committed = {"isolation_level": COMMITTED, "max_bytes": max_bytes}
            for partition_max_bytes in (0, 1, 5000):
                talk.fetch(version, *wanted, partition_max_bytes=partition_max_bytes, **committed)


def replicas(talk: Talk) -> None:
    """Fetches by a broker that is no replica of the partition."""
    talk.create("t")
    for version in (4, 11, 12, 14, 15, 16, 18):
        for epoch in (-1, 0, 1, 77):
            asked = talk.fetching(
                (("t", 0, 0, {"current_leader_epoch": epoch}),), version=version, replica_id=5
            )
            talk.ask(version, replace(asked, replica_state=ReplicaState(replica_id=5)))


def isolation_levels(talk: Talk) -> None:
    """Isolation levels that do not exist are refused only where there is something to read."""
    talk.create("t", 3)
    talk.produce("t", 0)
    unknown = (("t", 9, 0), ("nope", 0, 0))
    for level in (2, 3, -1, 127):
        for version in (4, 6, 7, 12, 13, 18):
            for wanted in ((), unknown, (("t", 0, 0), *unknown, ("t", 1, 0), ("t", 0, 0)), (("t", 0, 99),)):
                talk.fetch(version, *wanted, isolation_level=level)
    for version in (7, 12, 13, 18):
        session_id = talk.fetch(version, ("t", 0, 1), ("t", 1, 0), session=(0, 0)).session_id
        talk.fetch(version, session=(session_id, 1), isolation_level=3)
        talk.fetch(version, ("t", 2, 0), ("t", 7, 0), session=(session_id, 2), isolation_level=3)
        talk.fetch(version, session=(session_id, 3), isolation_level=3)
        talk.fetch(version, session=(session_id, 3))
        talk.fetch(version, session=(session_id, 4))
        talk.fetch(version, ("t", 1, 0), session=(session_id, -1), isolation_level=3)
        session_id = talk.fetch(version, *unknown, session=(0, 0), isolation_level=3).session_id
        talk.fetch(version, session=(session_id, 1), isolation_level=3)


def topics_without_ids(talk: Talk) -> None:
    talk.create("t", 2)
    talk.produce("t", 0)
    none, known, unknown, missing = (NO_ID, 0, 0), ("t", 0, 0), (UUID(int=9), 0, 0), ("t", 9, 0)
    for version in (13, 15, 17, 18):
        for other in (known, unknown, missing, (NO_ID, 1, 0), none):
            for wanted in ((none, other), (other, none)):
                talk.fetch(version, *wanted)
                talk.fetch(version, *wanted, session=(0, 0))
            session_id = talk.fetch(version, known, session=(0, 0)).session_id
            talk.fetch(version, none, other, session=(session_id, 1))
            talk.fetch(version, none, session=(session_id, 7))
            talk.fetch(version, session=(session_id, 2))
            talk.fetch(version, session=(session_id, 1))
            talk.fetch(version, none, session=(session_id, -1))
            talk.fetch(version, session=(session_id, 2))


def _list_offsets(
    talk: Talk,
    version: int,
    *asked: tuple[str, int, int],
    epoch: int = -1,
    replica: int = -1,
    isolation: int = 0,
) -> None:
    topics = tuple(
        ListOffsetsTopic(
            name=talk.name(name),
            partitions=(
                ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch),
            ),
        )
        for name, index, timestamp in asked
    )
    talk.ask(version, ListOffsetsRequest(replica_id=replica, isolation_level=isolation, topics=topics))


def list_offsets_by_every_timestamp(talk: Talk) -> None:
    talk.create("t", 2)
    for late in (5, 1, 9, 9, 3):
        talk.produce("t", 0, count=2, at_ms=AT_MS + late * 1000)
    for version in range(1, 12):
        for timestamp in (*range(-9, 2), AT_MS + 4000, AT_MS + 9000, AT_MS + 9001, AT_MS + 9002, 2**63 - 1):
            _list_offsets(talk, version, ("t", 0, timestamp))
            _list_offsets(talk, version, ("t", 1, timestamp), isolation=1)


def list_offsets_that_is_refused(talk: Talk) -> None:
    talk.create("t", 2)
    talk.produce("t", 0)
    for version in (4, 7, 11):
        for epoch in (-2, -1, 0, 1):
            _list_offsets(talk, version, ("t", 0, -1), epoch=epoch)
        for replica in (-1, -2, -3, 0, 1, 7):
            for timestamp in (-1, -2, -3, AT_MS):
                _list_offsets(talk, version, ("t", 0, timestamp), replica=replica)
        _list_offsets(talk, version, ("t", 5, -1), ("none", 0, -1))
        _list_offsets(talk, version, ("t", 5, -9), ("none", 0, -9))
        _list_offsets(talk, version, ("t", 0, -1), ("t", 0, -2))
        _list_offsets(talk, version, ("t", 0, -1), isolation=2)


def ends_of_leader_epochs(talk: Talk) -> None:
    talk.create("t", 2)
    talk.produce("t", 0)
    for version in (2, 3, 4):
        for replica in (-2, -1, 1, 9):
            for current in (-2, -1, 0, 1):
                for epoch in (-2, -1, 0, 1, 9):
                    parts = tuple(
                        OffsetForLeaderPartition(
                            partition=index, current_leader_epoch=current, leader_epoch=epoch
                        )
                        for index in (1, 0, 7)
                    )
                    topics = tuple(
                        OffsetForLeaderTopic(topic=talk.name(name), partitions=parts)
                        for name in ("t", "none")
                    )
                    talk.ask(version, OffsetForLeaderEpochRequest(replica_id=replica, topics=topics))
    part = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    twice = OffsetForLeaderTopic(topic=talk.name("t"), partitions=(part, part))
    talk.ask(4, OffsetForLeaderEpochRequest(replica_id=-2, topics=(twice, twice)))
    talk.ask(4, OffsetForLeaderEpochRequest(replica_id=-2, topics=()))


class _Producer:
    """A transactional producer on topic t, like the clients of Kafka 3."""

    def __init__(self, talk: Talk, name: str) -> None:
        self.talk = talk
        self.id = talk.name(name)
        self.sequence = 0
        talk.unheard(1, FindCoordinatorRequest(key=self.id, key_type=1))
        answer = self._until_ready(
            2, InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        )
        self.producer = answer.producer_id, answer.producer_epoch

    def begin(self) -> None:
        producer_id, epoch = self.producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=self.talk.name("t"), partitions=(0,)),),
        )
        while True:  # the end of the last transaction may still be under way
            (topic,) = self.talk.unheard(3, request).results_by_topic_v3_and_below
            error = topic.results_by_partition[0].partition_error_code
            if error == ErrorCode.NONE:
                return
            assert error == ErrorCode.CONCURRENT_TRANSACTIONS, error

    def send(self, *, at_ms: int = AT_MS) -> None:
        producer_id, epoch = self.producer
        batch = encode(
            [Record(0, at_ms, None, b"v")],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        self.sequence += 1
        data = TopicProduceData(
            name=self.talk.name("t"), partition_data=(PartitionProduceData(index=0, records=batch),)
        )
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=9000, topic_data=(data,))
        answer = self.talk.unheard(9, request)
        assert not answer.responses[0].partition_responses[0].error_code, answer

    def end(self, *, committed: bool) -> None:
        """End the transaction, and wait until its marker is in the log."""
        before = self._high_watermark()
        producer_id, epoch = self.producer
        self._until_ready(
            3,
            EndTxnRequest(
                transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=committed
            ),
        )
        while self._high_watermark() == before:
            pass

    def _high_watermark(self) -> int:
        request = self.talk.fetching((("t", 0, 0),), version=12)
        return int(self.talk.unheard(12, request).responses[0].partitions[0].high_watermark)

    def _until_ready(self, version: int, request: Any) -> Any:
        while True:
            answer = self.talk.unheard(version, request)
            if answer.error_code == ErrorCode.NONE:
                return answer
            assert answer.error_code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.CONCURRENT_TRANSACTIONS,
            ), answer


def _read_from_all_offsets(talk: Talk, end: int) -> None:
    for version in (4, 12, 18):
        for isolation_level in (0, COMMITTED):
            for offset in range(end + 2):
                talk.fetch(version, ("t", 0, offset), isolation_level=isolation_level)
    for timestamp in (-1, -2, -3, -4, AT_MS, AT_MS + 1000, AT_MS + 3000, AT_MS + 5000):
        for isolation_level in (0, COMMITTED):
            _list_offsets(talk, 8, ("t", 0, timestamp), isolation=isolation_level)


def an_open_transaction_hides_what_is_behind_it(talk: Talk) -> None:
    talk.create("t", 1)
    one, two = _Producer(talk, "one"), _Producer(talk, "two")
    talk.produce("t")
    one.begin()
    one.send(at_ms=AT_MS + 1000)
    two.begin()
    two.send(at_ms=AT_MS + 3000)
    talk.produce("t", at_ms=AT_MS + 5000)
    _read_from_all_offsets(talk, 4)
    one.end(committed=True)
    _read_from_all_offsets(talk, 5)
    two.end(committed=True)
    _read_from_all_offsets(talk, 6)


def aborted_transactions_are_told(talk: Talk) -> None:
    talk.create("t", 1)
    one, two = _Producer(talk, "one"), _Producer(talk, "two")
    one.begin()
    one.send()
    two.begin()
    two.send()
    one.end(committed=False)
    one.begin()
    one.send()
    two.end(committed=False)
    one.end(committed=True)
    one.begin()
    one.send()
    _read_from_all_offsets(talk, 7)
    one.end(committed=False)
    _read_from_all_offsets(talk, 8)


def sessions_of_a_read_committed_consumer(talk: Talk) -> None:
    talk.create("t", 2)
    one = _Producer(talk, "one")
    for version in (12, 18):
        talk.delete("t")
        talk.create("t", 2)
        committed = {"isolation_level": COMMITTED}
        id = talk.fetch(version, ("t", 0, 0), ("t", 1, 0), session=(0, 0), **committed).session_id
        one.begin()
        one.send()
        talk.fetch(version, session=(id, 1), **committed)  # its high watermark has changed
        talk.fetch(version, session=(id, 2), **committed)
        one.end(committed=True)
        talk.fetch(version, session=(id, 3), **committed)
        talk.fetch(version, ("t", 0, 2), session=(id, 4), **committed)
        one.begin()
        one.send()
        talk.fetch(version, session=(id, 5), **committed)
        talk.fetch(version, session=(id, 6))  # this one has everything
        talk.fetch(version, session=(id, 7), **committed)
        talk.send(version, talk.fetching(version=version, session=(id, 8), max_wait_ms=9000, **committed))
        talk.produce("t", 0)
        one.end(committed=False)
        talk.hear(version, ApiKey.FETCH)


def _delete_records(talk: Talk, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = (DeleteRecordsTopic(name=talk.name("t"), partitions=(partition,)),)
    talk.unheard(2, DeleteRecordsRequest(topics=topics, timeout_ms=9000))


def a_log_starts_later(talk: Talk) -> None:
    for version in (12, 18):
        talk.create("t", 2)
        for late in range(3):
            talk.produce("t", 0, count=3, at_ms=AT_MS + late * 1000)
        id = talk.fetch(version, ("t", 0, 9), ("t", 1, 0), session=(0, 0)).session_id
        for epoch, start in enumerate((1, 3, 5), 1):
            _delete_records(talk, start)
            talk.fetch(version, session=(id, epoch))
            for offset in range(11):
                talk.fetch(version, ("t", 0, offset))
                talk.fetch(version, ("t", 0, offset, {"last_fetched_epoch": 0}))
            for timestamp in (-1, -2, -3, -4, AT_MS, AT_MS + 2, AT_MS + 1001, AT_MS + 2002, AT_MS + 2003):
                _list_offsets(talk, 8, ("t", 0, timestamp))
        _delete_records(talk, 9)
        for timestamp in (-1, -2, -4, AT_MS):
            _list_offsets(talk, 8, ("t", 0, timestamp))
        talk.fetch(version, ("t", 0, 8))
        talk.fetch(version, ("t", 0, 9))
        talk.delete("t")


def a_log_starts_later_while_it_is_waited_for(talk: Talk) -> None:
    talk.create("t", 1)
    for _ in range(3):
        talk.produce("t", 0)
    for session in ((0, -1), (0, 0)):
        request = talk.fetching((("t", 0, 3),), version=12, session=session, max_wait_ms=700)
        talk.send(12, request)
        talk.rest()
        _delete_records(talk, 2)
        talk.hear(12, ApiKey.FETCH)
