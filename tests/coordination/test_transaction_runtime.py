"""The runtime around the transaction coordinator: when it answers, and what it repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.callers import RequestContext
from kshim.cluster import NO_LEADER, TRANSACTION_STATE_TOPIC
from kshim.cluster.changes import Move
from kshim.coordination.markers import MOST_NAMED, RETRY_MS
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.coordination.transactions.requests import AddPartitions
from kshim.storage.interfaces import StorageError
from kshim.storage.journal import LogJournal
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.records.end_txn_marker import EndTxnMarker
from tests.api.harness import HeldStore, advance, collect, context, new_broker, result

ID = "payments"
T0, T1 = ("topic", 0), ("topic", 1)
INTERVAL_S = 10


class Setting:
    """A runtime over a store in memory."""

    def __init__(self, store: Any = None, *, make_topic: bool = True) -> None:
        self.store = store or MemoryStore()
        self.broker = new_broker(self.store, transaction_state_log_num_partitions=5)
        self.marked: list[tuple[str, int, EndTxnMarker, Deferred[ErrorCode]]] = []
        """The markers that were requested and are not written yet."""
        self.context: RequestContext = replace(context(5), node_id=self.broker.node_id)
        if make_topic:
            made = self.broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC])
            self.release_all()
            result(made)
        self.start()

    def start(self) -> None:
        self.marked.clear()
        self.runtime = TransactionRuntime(
            self.broker.cluster, self.broker.log, self.broker.config, self.broker.clock
        )
        self.runtime.start(self.write_marker)

    def write_marker(
        self, topic_name: str, index: int, marker: EndTxnMarker, transaction_version: int
    ) -> Deferred[ErrorCode]:
        done: Deferred[ErrorCode] = Deferred()
        self.marked.append((topic_name, index, marker, done))
        return done

    def write(self, error: ErrorCode = ErrorCode.NONE) -> EndTxnMarker:
        """Answer the oldest requested marker."""
        _, _, marker, done = self.marked.pop(0)
        done.callback(error)
        return marker

    def release_all(self) -> None:
        if isinstance(self.store, HeldStore):
            self.store.release_all()

    def submit(self, request: Any, node_id: int | None = None) -> list[Any]:
        """Send a request and end the reactor's turn; returns a list that gets the answer."""
        asked = self.context if node_id is None else replace(self.context, node_id=node_id)
        seen = collect(self.runtime.submit(asked, request))
        self.turn()
        return seen

    def turn(self) -> None:
        """End a turn of the reactor."""
        advance(self.broker)

    def ask(self, request: Any) -> Any:
        seen = self.submit(request)
        self.release_all()
        self.turn()  # the request goes on now if it waited for a producer id
        self.release_all()
        (answer,) = seen
        return answer

    def begin(self, *partitions: tuple[str, int]) -> None:
        """A producer with id 0 and epoch 0, and these partitions in its transaction."""
        self.ask(init())
        if partitions:
            self.ask(AddPartitions(ID, 0, 0, partitions))

    def state(self) -> str:
        answer = self.ask(DescribeTransactionsRequest(transactional_ids=(ID,)))
        state: str = answer.transaction_states[0].transaction_state
        return state


def init() -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=ID, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )


def end(committed: bool = True, epoch: int = 0) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=ID, producer_id=0, producer_epoch=epoch, committed=committed)


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.fixture
def held() -> Setting:
    """Writes become durable only when the test says so; a transaction is open."""
    setting = Setting(HeldStore())
    setting.begin(T0, T1)
    return setting


# ---- the end


def test_a_coordinator_without_a_topic_stops_and_makes_none() -> None:
    setting = Setting(make_topic=False)
    setting.runtime.stop()
    result(setting.broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC]))
    assert setting.ask(init()).error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


# ---- before there is a topic


def test_without_its_topic_there_is_no_coordinator() -> None:
    setting = Setting(make_topic=False)
    assert setting.ask(init()).error_code == ErrorCode.NOT_COORDINATOR
    described = setting.ask(DescribeTransactionsRequest(transactional_ids=(ID,)))
    assert described.transaction_states[0].error_code == ErrorCode.NOT_COORDINATOR
    assert setting.ask(ListTransactionsRequest()).transaction_states == ()
    result(setting.broker.cluster.auto_create_topics([TRANSACTION_STATE_TOPIC]))
    assert setting.ask(init()).error_code == ErrorCode.NONE


# ---- what is answered when


def test_nobody_is_told_of_an_outcome_that_a_crash_could_take_back(held: Setting) -> None:
    answer = held.submit(end())
    described = held.submit(DescribeTransactionsRequest(transactional_ids=(ID,)))
    assert (answer, described, held.marked) == ([], [], [])
    held.store.release()
    assert answer[0].error_code == ErrorCode.NONE
    assert described[0].transaction_states[0].transaction_state == "PrepareCommit"
    assert [(topic, index) for topic, index, _, _ in held.marked] == [T0, T1]


def test_a_transaction_is_over_when_its_last_marker_is_durable(held: Setting) -> None:
    held.ask(end())
    assert held.write() == EndTxnMarker(0, 1, True, 0, held.broker.now_ms())
    assert held.store.writes == []
    held.write()
    held.turn()
    assert len(held.store.writes) == 1
    held.store.release()
    assert held.state() == "CompleteCommit"


def test_an_abort_of_nothing_is_over_at_once(setting: Setting) -> None:
    setting.begin()
    assert setting.ask(end(committed=False)).producer_epoch == 1
    assert (setting.state(), setting.marked) == ("CompleteAbort", [])


def test_several_transactions_are_asked_for_in_one_request(setting: Setting) -> None:
    setting.begin()
    transactions = tuple(
        AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=0,
            producer_epoch=0,
            topics=(AddPartitionsToTxnTopic(name="topic", partitions=(0,)),),
        )
        for name in (ID, "nobody")
    )
    answer = setting.ask(AddPartitionsToTxnRequest(transactions=transactions))
    errors = [
        each.topic_results[0].results_by_partition[0].partition_error_code
        for each in answer.results_by_transaction
    ]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_ID_MAPPING]


# ---- markers that cannot be written


def test_a_marker_is_written_again_until_it_is_durable(setting: Setting) -> None:
    setting.begin(T0)
    setting.ask(end())
    for _ in range(3):
        setting.write(ErrorCode.KAFKA_STORAGE_ERROR)
        assert (setting.marked, setting.state()) == ([], "PrepareCommit")
        advance(setting.broker, RETRY_MS)
    setting.write()
    assert setting.state() == "CompleteCommit"


def test_a_marker_is_written_again_after_a_fault_of_ours(setting: Setting) -> None:
    setting.begin(T0)
    setting.ask(end())
    *_, written = setting.marked.pop()
    written.errback(KeyError("partition"))
    assert setting.state() == "PrepareCommit"
    advance(setting.broker, RETRY_MS)
    setting.write()
    assert setting.state() == "CompleteCommit"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ],
)
def test_a_partition_that_can_never_get_its_marker_is_left_without_it(
    setting: Setting, error: ErrorCode
) -> None:
    setting.begin(T0, T1)
    setting.ask(end())
    setting.write(error)
    setting.write()
    assert setting.state() == "CompleteCommit"


def test_partitions_without_a_marker_are_logged_in_one_line(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    setting.begin(*(("topic", index) for index in range(MOST_NAMED + 2)))
    setting.ask(end())
    for _ in range(MOST_NAMED + 2):
        setting.write(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    advance(setting.broker)
    assert [line for line in caplog.messages if "marker" in line] == [
        "transactional id payments: no marker in topic-0, topic-1, topic-2, topic-3, topic-4 and 2 more "
        "(UNKNOWN_TOPIC_OR_PARTITION), the topic is gone"
    ]


# ---- restarts, failures, and shards that move


@pytest.mark.parametrize("written", [0, 1])
def test_the_markers_are_written_again_after_a_restart(setting: Setting, written: int) -> None:
    setting.begin(T0, T1)
    setting.ask(end(committed=False))
    for _ in range(written):
        setting.write()
    setting.runtime.stop()
    setting.start()
    assert [(topic, index) for topic, index, _, _ in setting.marked] == [T0, T1]
    assert not setting.write().committed
    setting.write()
    assert setting.state() == "CompleteAbort"


def test_markers_of_a_former_lead_complete_nothing(setting: Setting) -> None:
    setting.begin(T0)
    setting.ask(end())
    late = list(setting.marked)
    setting.runtime.stop()
    late[0][3].callback(ErrorCode.NONE)
    setting.start()
    assert setting.state() == "PrepareCommit"


def test_requests_that_wait_when_the_journal_fails_must_be_retried(held: Setting) -> None:
    answers = [held.submit(end()), held.submit(end())]
    held.store.fail()
    assert [answer[0].error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 2
    assert (held.marked, held.state()) == ([], "Ongoing")
    assert held.ask(end()).error_code == ErrorCode.NONE


def test_requests_that_wait_when_the_server_stops_must_go_elsewhere(held: Setting) -> None:
    answer = held.submit(end())
    held.runtime.stop()
    assert answer[0].error_code == ErrorCode.NOT_COORDINATOR
    assert held.submit(end())[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_journal_that_holds_nonsense_is_not_served(setting: Setting) -> None:
    partitions = setting.broker.cluster.topics[TRANSACTION_STATE_TOPIC].partitions
    journal = LogJournal(setting.broker.log, [partition.partition_no for partition in partitions])
    result(journal.append(3, [(b"\0\0\0\1x", b"\0\1")], setting.broker.now_ms()))
    with pytest.raises(StorageError, match="__transaction_state-3 holds a corrupt record"):
        setting.start()


def test_another_broker_coordinates(setting: Setting) -> None:
    setting.begin(T0)
    other = setting.broker.node_id + 1
    (answer,) = setting.submit(init(), node_id=other)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    (answer,) = setting.submit(ListTransactionsRequest(), node_id=other)
    assert answer.transaction_states == ()
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=ID,
        producer_id=0,
        producer_epoch=0,
        topics=(AddPartitionsToTxnTopic(name="topic", partitions=(0,)),),
    )
    (answer,) = setting.submit(AddPartitionsToTxnRequest(transactions=(transaction,)), node_id=other)
    results = answer.results_by_transaction[0].topic_results[0].results_by_partition
    assert results[0].partition_error_code == ErrorCode.NONE


def moved(setting: Setting, leader: int, leader_epoch: int) -> Move:
    """The shard of ID gets another leader."""
    topic = setting.broker.cluster.topics[TRANSACTION_STATE_TOPIC]
    assert setting.runtime._coordinator is not None
    shard = setting.runtime._coordinator.shard_for(ID)
    before = topic.partitions[shard]
    after = replace(before, leader=leader, leader_epoch=leader_epoch)
    partitions = (*topic.partitions[:shard], after, *topic.partitions[shard + 1 :])
    setting.broker.cluster.topics[TRANSACTION_STATE_TOPIC] = replace(topic, partitions=partitions)
    return Move(topic, before, after)


def test_a_shard_follows_the_leader_of_its_partition(setting: Setting) -> None:
    setting.begin(T0)
    setting.ask(end())
    setting.runtime.follow([moved(setting, NO_LEADER, 1)])
    assert setting.submit(end())[0].error_code == ErrorCode.NOT_COORDINATOR
    setting.marked.clear()
    setting.runtime.follow([moved(setting, setting.broker.node_id, 2)])
    assert setting.write().coordinator_epoch == 2
    assert setting.state() == "CompleteCommit"


def test_a_shard_that_gets_its_leader_late_has_its_time_outs_too(setting: Setting) -> None:
    setting.runtime.stop()
    topic = setting.broker.cluster.topics[TRANSACTION_STATE_TOPIC]
    nobody = tuple(replace(partition, leader=NO_LEADER) for partition in topic.partitions)
    setting.broker.cluster.topics[TRANSACTION_STATE_TOPIC] = replace(topic, partitions=nobody)
    setting.start()
    assert setting.ask(init()).error_code == ErrorCode.NOT_COORDINATOR
    setting.runtime.follow([moved(setting, setting.broker.node_id, 1)])
    setting.begin(T0)
    advance(setting.broker, 1000 * (60 + 2 * INTERVAL_S))
    assert not setting.write().committed


def test_a_shard_is_loaded_when_what_its_former_leader_has_appended_is_settled(held: Setting) -> None:
    """Else the new leader would not know of it, though it would become durable."""
    answer = held.submit(end())
    other = held.broker.node_id + 1
    held.runtime.follow([moved(held, other, 1)])
    assert answer[0].error_code == ErrorCode.NOT_COORDINATOR
    (asked,) = held.submit(end(), node_id=other)
    assert asked.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    held.store.release()
    assert [(topic, index) for topic, index, _, _ in held.marked] == [T0, T1]
    (asked,) = held.submit(DescribeTransactionsRequest(transactional_ids=(ID,)), node_id=other)
    assert asked.transaction_states[0].transaction_state == "PrepareCommit"


def test_a_long_shard_is_loaded_a_turn_at_a_time(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.begin(T0)
    for index in range(1, 6):
        setting.ask(AddPartitions(ID, 0, 0, (("topic", index),)))
    monkeypatch.setattr("kshim.coordination.loading.LONGEST_TURN_MS", 0)
    other = setting.broker.node_id + 1
    setting.runtime.follow([moved(setting, other, 1)])
    (asked,) = collect(setting.runtime.submit(replace(setting.context, node_id=other), end()))
    assert asked.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    setting.turn()
    assert setting.submit(end(), node_id=other)[0].error_code == ErrorCode.NONE


def test_nothing_is_led_again_after_the_end(setting: Setting) -> None:
    setting.begin()
    setting.runtime.stop()
    setting.runtime.follow([moved(setting, setting.broker.node_id, 1)])
    assert setting.submit(init())[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# ---- time


def test_a_transaction_whose_time_is_up_is_aborted(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    setting.begin(T0)
    clock = setting.broker.clock
    for _ in range(7):
        assert setting.marked == []
        clock.advance(INTERVAL_S)
    assert not setting.write().committed
    assert setting.state() == "CompleteAbort"
    assert "transactional id payments: aborted, its time is up" in caplog.text


def test_nothing_is_scheduled_after_the_end(setting: Setting) -> None:
    setting.begin(T0)
    setting.runtime.stop()
    assert setting.broker.clock.getDelayedCalls() == []


# ---- producer ids


def test_a_producer_id_that_cannot_be_had_is_asked_for_again() -> None:
    setting = Setting(HeldStore())
    answer = setting.submit(init())
    setting.store.fail()
    assert answer[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = setting.submit(init())
    setting.release_all()
    setting.turn()
    setting.release_all()
    assert (answer[0].error_code, answer[0].producer_epoch) == (ErrorCode.NONE, 0)


def test_a_producer_id_that_was_not_needed_is_kept(setting: Setting) -> None:
    answers = [setting.ask(replace(init(), transactional_id=name)) for name in ("a", "a", "b", "a", "c")]
    assert [answer.producer_id for answer in answers] == [0, 0, 1, 0, 2]
