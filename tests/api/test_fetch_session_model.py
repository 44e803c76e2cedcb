"""A session reads only the partitions that are due, and must answer as if it read all of them every time.

The model reads all; anything may happen to the logs in between.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kshim.answering import Broker
from kshim.api.delete_topics import delete_topics
from kshim.api.fetch import fetch
from kshim.fetching.sessions import FetchSessions
from schemas.error_code import ErrorCode
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from schemas.records.batch import Record, batches, decode_header, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.api.harness import NOW_MS, advance, batch, collect, context, create, new_broker, result

VERSION = 12
PARTITIONS = 4
PRODUCER_ID = 9
Key = tuple[str, int]

TOPICS = st.sampled_from(["a", "b"])
INDEXES = st.integers(0, PARTITIONS)  # the last one does not exist
KEYS = st.tuples(TOPICS, INDEXES)


class Model:
    """Kafka's rule applied to all partitions: their order, and the last answer to the client about each."""

    def __init__(self) -> None:
        self.wanted: dict[Key, FetchPartition] = {}
        self.told: dict[Key, tuple[int, int]] = {}

    def answer(self, read: dict[Key, PartitionData], begins: bool) -> dict[Key, PartitionData]:
        """The part of `read` that the answer carries; `read` has all partitions in their order."""
        told = {}
        for key, data in read.items():
            known = self.told.get(key, (-1, -1))
            if (
                begins
                or data.error_code
                or data.records
                or known != (data.high_watermark, data.log_start_offset)
            ):
                told[key] = data
            self.told[key] = (-1 if data.error_code else data.high_watermark, data.log_start_offset)
            if data.records or begins:
                self.wanted[key] = self.wanted.pop(key)
        return told


class FetchSessionModel(RuleBasedStateMachine):
    """One client, one session, two topics."""

    @initialize(keys=st.lists(KEYS, unique=True, min_size=1))
    def begin(self, keys: list[Key]) -> None:
        self.broker = new_broker()
        for name in ("a", "b"):
            create(self.broker, name, PARTITIONS)
        self.sequences: dict[int, int] = {}
        self.open: set[int] = set()
        self.model = Model()
        self.id = self.epoch = 0
        self._fetch(dict.fromkeys(keys, 0), [], 0, 1 << 20, 1)

    # ---- what happens to the logs

    def _partition_no(self, key: Key) -> int | None:
        topic = self.broker.cluster.topics.get(key[0])
        partition = topic.partition(key[1]) if topic else None
        return partition.partition_no if partition else None

    def _append(self, key: Key, data: bytes) -> None:
        partition_no = self._partition_no(key)
        if partition_no is not None:
            result(self.broker.log.append(partition_no, data, now_ms=NOW_MS))

    @rule(key=KEYS, size=st.integers(1, 300))
    def append(self, key: Key, size: int) -> None:
        self._append(key, batch(b"x" * size))

    @rule(key=KEYS)
    def send_in_a_transaction(self, key: Key) -> None:
        partition_no = self._partition_no(key)
        if partition_no is not None:
            sequence = self.sequences.get(partition_no, 0)
            self.sequences[partition_no] = sequence + 1
            self.open.add(partition_no)
            ids = {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": sequence}
            records = [Record(0, NOW_MS, None, b"v")]
            self._append(key, encode(records, is_transactional=True, **ids))

    @rule(key=KEYS, committed=st.booleans())
    def end_a_transaction(self, key: Key, committed: bool) -> None:
        partition_no = self._partition_no(key)
        if partition_no in self.open:
            self.open.discard(partition_no)
            self._append(key, encode_marker(EndTxnMarker(PRODUCER_ID, 0, committed, 0, NOW_MS)))

    @rule(key=KEYS)
    def delete_records(self, key: Key) -> None:
        partition_no = self._partition_no(key)
        if partition_no is not None:
            end = self.broker.log.offsets(partition_no).high_watermark
            result(self.broker.log.delete_records(partition_no, end))

    @rule(name=TOPICS)
    def delete_or_make_a_topic(self, name: str) -> None:
        if name in self.broker.cluster.topics:
            asked = DeleteTopicsRequest(topic_names=(name,), timeout_ms=1)
            result(delete_topics(self.broker, context(5), asked))
        else:
            create(self.broker, name, PARTITIONS)

    @rule(name=TOPICS, node_id=st.sampled_from([1, 2]))
    def another_leads(self, name: str, node_id: int) -> None:
        topic = self.broker.cluster.topics.get(name)
        if topic is not None:
            moved = tuple(replace(part, leader=node_id, replicas=(node_id,)) for part in topic.partitions)
            self.broker.cluster.topics[name] = replace(topic, partitions=moved)
            for part in moved:
                self.broker.log.wake(part.partition_no)

    # ---- what the client asks

    @rule(
        moves=st.lists(st.tuples(KEYS, st.integers(-1, 1)), unique_by=lambda move: move[0]),
        forget=st.lists(KEYS, max_size=3),
        isolation_level=st.sampled_from([0, 0, 0, 1]),
        max_bytes=st.sampled_from([1, 300, 1 << 20]),
        min_bytes=st.sampled_from([0, 1, 500]),
        meanwhile=KEYS,
    )
    def fetch(
        self,
        moves: list[tuple[Key, int]],
        forget: list[Key],
        isolation_level: int,
        max_bytes: int,
        min_bytes: int,
        meanwhile: Key,
    ) -> None:
        """Ask for some partitions from their ends, or from one before or after."""
        offsets = {key: self._end(key) + shift for key, shift in moves}
        self._fetch(offsets, forget, isolation_level, max_bytes, min_bytes, meanwhile)

    @rule(max_bytes=st.sampled_from([1, 300, 1 << 20]))
    def go_on(self, max_bytes: int) -> None:
        """Continue behind the records that were received, as consumers do."""
        self._fetch(dict(self.behind), [], 0, max_bytes, 1)

    def _end(self, key: Key) -> int:
        partition_no = self._partition_no(key)
        return 0 if partition_no is None else self.broker.log.offsets(partition_no).high_watermark

    def _fetch(
        self,
        offsets: dict[Key, int],
        forget: list[Key],
        isolation_level: int,
        max_bytes: int,
        min_bytes: int,
        meanwhile: Key | None = None,
    ) -> None:
        model, begins = self.model, self.epoch == 0
        asked = {
            key: FetchPartition(partition=key[1], fetch_offset=offset, partition_max_bytes=1 << 20)
            for key, offset in offsets.items()
        }
        model.wanted |= asked
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=tuple(FetchTopic(topic=key[0], partitions=(wanted,)) for key, wanted in asked.items()),
            forgotten_topics_data=tuple(ForgottenTopic(topic=key[0], partitions=(key[1],)) for key in forget),
        )
        if not begins:
            for key in forget:
                model.wanted.pop(key, None)
                model.told.pop(key, None)
        if not model.wanted:  # the session ends, and the answer has what this request named
            model.wanted, begins = asked, True
        seen = collect(fetch(self.broker, context(VERSION), request))
        if not seen and meanwhile is not None:
            self._append(meanwhile, batch(b"x" * 600))
        if not seen:
            advance(self.broker, 500)
        (response,) = seen
        assert response.error_code == ErrorCode.NONE
        read = _parts(_read_all(self.broker, model, request))
        expected = model.answer(read, begins)
        assert list(_parts(response).items()) == list(expected.items())
        self.id, self.epoch = response.session_id, self.epoch + 1 if response.session_id else 0
        if not self.id:
            self.model = Model()
        self.behind = {key: _next_offset(data) for key, data in expected.items() if data.records}


def _read_all(broker: Broker, model: Model, request: FetchRequest) -> FetchResponse:
    """Read like `read`, without a session."""
    topics = tuple(FetchTopic(topic=key[0], partitions=(wanted,)) for key, wanted in model.wanted.items())
    asked: Any = FetchRequest(
        max_wait_ms=0,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        topics=topics,
    )
    answer = fetch(replace(broker, fetch_sessions=FetchSessions()), context(VERSION), asked)
    assert isinstance(answer, FetchResponse)
    return answer


def _parts(response: FetchResponse) -> dict[Key, PartitionData]:
    """The partitions, in the order of the answer."""
    return {
        (topic.topic, part.partition_index): part for topic in response.responses for part in topic.partitions
    }


def _next_offset(data: PartitionData) -> int:
    return [decode_header(item).next_offset for item in batches(data.records or b"")][-1]


TestFetchSessionModel = FetchSessionModel.TestCase
TestFetchSessionModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
