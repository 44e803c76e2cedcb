"""The transaction coordinator over time, after a load, and as administrators see it."""

from __future__ import annotations

import pytest

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.transactions.coordinator import TransactionCoordinator
from kshim.coordination.transactions.decision import Ending, TimedOut, TransactionRecord
from kshim.coordination.transactions.requests import AddPartitions, DescribeTransaction
from kshim.coordination.transactions.settings import Settings
from kshim.coordination.transactions.shard import MOST_ABORTED, MOST_EXPIRED
from kshim.coordination.transactions.states import BY_TEXT, TRANSITIONS, State
from schemas.error_code import ErrorCode
from schemas.messages.describe_transactions import TopicData, TransactionState
from schemas.messages.end_txn import EndTxnResponse
from schemas.messages.list_transactions import ListTransactionsRequest
from tests.coordination.transactions.history import ID, NOW_MS, OTHER, T0, T1, TIMEOUT_MS, History, init

INTERVAL_MS = Settings().transaction_abort_timed_out_transaction_cleanup_interval_ms
EXPIRATION_MS = Settings().transactional_id_expiration_ms


def ongoing() -> History:
    history = History()
    history.init()
    history.add((1000, 0), T0)
    return history


# ---- transactions whose time is up


def test_a_transaction_is_open_for_as_long_as_its_producer_wanted() -> None:
    history = ongoing()
    assert history.coordinator.next_deadline_ms() == NOW_MS + INTERVAL_MS
    assert history.pass_ms(INTERVAL_MS) == []
    assert history.pass_ms(TIMEOUT_MS - INTERVAL_MS) == []  # its whole timeout is not too long
    before = history.transaction()
    assert before is not None
    fenced = before.fenced(NOW_MS + TIMEOUT_MS + INTERVAL_MS)
    assert history.pass_ms(INTERVAL_MS) == [
        Decision(0, (TransactionRecord(ID, fenced),), reports=(TimedOut(ID),), endings=(Ending(ID, fenced),))
    ]
    history.write_markers()
    assert (history.state, history.pass_ms(INTERVAL_MS)) == (State.COMPLETE_ABORT, [])


def test_a_producer_whose_time_was_up_is_fenced_and_may_go_on() -> None:
    history = ongoing()
    history.pass_ms(TIMEOUT_MS + INTERVAL_MS)
    history.write_markers()
    assert history.add((1000, 0)) is ErrorCode.PRODUCER_FENCED
    assert history.end((1000, 0), version=4) == EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
    answer = history.init(producer_id=1000, producer_epoch=0)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 1)


def test_many_transactions_are_aborted_in_steps() -> None:
    history = History()
    names = [f"id-{number}" for number in range(MOST_ABORTED)]
    for number, name in enumerate(names):
        history.init(transactional_id=name)
        history.ask(AddPartitions(name, 1000 + number, 0, (T0,)))
    steps = history.pass_ms(TIMEOUT_MS + INTERVAL_MS)
    assert [len(step.records) for step in steps] == [MOST_ABORTED // 2, MOST_ABORTED // 2]


def test_the_last_epoch_is_kept_for_fencing() -> None:
    history = History()
    history.init()
    history.give_epoch(32_766)
    history.add((1000, 32_766), T0)
    history.pass_ms(TIMEOUT_MS + INTERVAL_MS)
    history.write_markers()
    transaction = history.transaction()
    assert transaction is not None
    assert transaction.producer_epoch == 32_767
    assert history.init().producer_id == 1001


# ---- ids that nobody uses


@pytest.mark.parametrize("ended", [False, True])
def test_an_id_without_a_transaction_expires(ended: bool) -> None:
    history = ongoing() if ended else History()
    if ended:
        history.end((1000, 0))
        history.write_markers()
    else:
        history.init()
    hour_ms = Settings().transaction_remove_expired_transaction_cleanup_interval_ms
    assert history.pass_ms(EXPIRATION_MS - hour_ms) == []
    assert history.pass_ms(hour_ms) == [Decision(0, (TransactionRecord(ID, None),))]
    assert history.describe().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert history.journal[-1][1] is None


def test_an_id_with_a_transaction_does_not_expire() -> None:
    history = ongoing()
    history.end((1000, 0))
    assert history.pass_ms(2 * EXPIRATION_MS) == []


def test_many_ids_expire_in_steps() -> None:
    history = History()
    for number in range(MOST_EXPIRED + 1):
        history.init(transactional_id=f"id-{number}")
    assert [len(step.records) for step in history.pass_ms(EXPIRATION_MS)] == [MOST_EXPIRED, 1]


def test_steps_that_are_not_taken_stay_due() -> None:
    history = ongoing()
    history.now_ms += TIMEOUT_MS + INTERVAL_MS
    history.coordinator.advance(history.now_ms)  # the generator is not read
    assert len(history.pass_ms(0)) == 1


# ---- loading


@pytest.mark.parametrize("committed", [False, True])
def test_what_was_being_ended_is_ended_after_a_restart(committed: bool) -> None:
    history = ongoing()
    history.end((1000, 0), committed)
    endings = list(history.endings)
    history.restart()
    assert [ending.transactional_id for ending in history.endings] == [ID]
    assert history.endings[0].transaction.state is endings[0].transaction.state
    history.write_markers()
    assert history.state is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)


def test_an_open_transaction_goes_on_after_a_restart() -> None:
    history = ongoing()
    history.restart()
    assert (history.endings, history.add((1000, 0), T1)) == ([], ErrorCode.NONE)
    assert history.end((1000, 0), version=4) == EndTxnResponse()


def test_a_shard_that_is_not_here_or_not_yet() -> None:
    coordinator = TransactionCoordinator(Settings(), lambda: 1, 1)
    request = DescribeTransaction(ID)

    def error() -> int:
        (reply,) = coordinator.handle(Caller(0), request, NOW_MS).replies
        code: int = reply.response.error_code
        return code

    assert coordinator.next_deadline_ms() is None
    assert error() == ErrorCode.NOT_COORDINATOR
    coordinator.begin_load(0)
    assert error() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    answer = coordinator.list_transactions(ListTransactionsRequest(), 0, NOW_MS)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.finish_load(0, NOW_MS)
    assert error() == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    coordinator.unload(0)
    assert error() == ErrorCode.NOT_COORDINATOR


def test_kafka_s_hash_finds_the_shard() -> None:
    coordinator = TransactionCoordinator(Settings(), lambda: 1, 50)
    assert [coordinator.shard_for(name) for name in ("", "a", "polygenelubricants")] == [0, 47, 0]


# ---- administrators


def test_a_transaction_is_described() -> None:
    history = History()
    history.init()
    history.add((1000, 0), T1, OTHER, T0)
    assert history.describe() == TransactionState(
        transactional_id=ID,
        transaction_state="Ongoing",
        transaction_timeout_ms=TIMEOUT_MS,
        transaction_start_time_ms=NOW_MS,
        producer_id=1000,
        producer_epoch=0,
        topics=(TopicData(topic="other", partitions=(0,)), TopicData(topic="topic", partitions=(0, 1))),
    )


def test_an_empty_transactional_id_is_no_question() -> None:
    answer = History().ask(DescribeTransaction(""))
    assert answer == TransactionState(error_code=ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["a", "b", "long"]),
        ({"state_filters": ("Empty",)}, ["a"]),
        ({"state_filters": ("Ongoing", "Empty")}, ["a", "b", "long"]),
        ({"state_filters": ("Dead", "PrepareEpochFence")}, []),
        ({"producer_id_filters": (1001, 1002, 7)}, ["b", "long"]),
        ({"duration_filter": 0}, ["a", "long"]),  # Empty has no start: it counts as old, as in Kafka
        ({"duration_filter": 5}, ["a"]),
    ],
)
def test_transactions_are_listed(filters: dict[str, object], expected: list[str]) -> None:
    history = History()
    for name in ("a", "b", "long"):
        history.init(transactional_id=name)
    for name, producer_id in (("long", 1002), ("b", 1001)):
        history.ask(AddPartitions(name, producer_id, 0, (T0,)))
        history.now_ms += 5 if name == "long" else 0
    answer = history.coordinator.list_transactions(
        ListTransactionsRequest(**filters),
        0,
        history.now_ms,
    )
    assert answer.error_code == ErrorCode.NONE
    assert [each.transactional_id for each in answer.transaction_states] == expected


def test_states_that_there_are_not() -> None:
    request = ListTransactionsRequest(state_filters=("Ongoing", "Bored", "ongoing", "Bored"))
    answer = History().coordinator.list_transactions(request, 0, NOW_MS)
    assert answer.unknown_state_filters == ("Bored", "ongoing")


# ---- the tables


def test_every_state_that_may_follow_is_one_that_can_be_left() -> None:
    reachable = {state for following in TRANSITIONS.values() for state in following}
    assert reachable - {State.DEAD} == set(TRANSITIONS)


def test_names_on_the_wire() -> None:
    assert list(BY_TEXT) == [
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
        *("Dead", "PrepareEpochFence"),
    ]


def test_a_state_that_may_not_follow_is_a_fault_of_ours() -> None:
    history = ongoing()
    history.decide(init())
    transaction = history.transaction()
    assert transaction is not None
    with pytest.raises(AssertionError):
        history.coordinator.replay(
            0, [TransactionRecord(ID, transaction.with_partitions(frozenset(), 0, NOW_MS))]
        )
