"""A transaction is committed or aborted, by old clients and by those that get a new epoch for each one."""

from __future__ import annotations

import pytest

from kshim.coordination.decision import Decision, Reply
from kshim.coordination.transactions.decision import Ending, TransactionRecord
from kshim.coordination.transactions.states import END_TXN_V1, END_TXN_V2, Action, Asked, State
from kshim.coordination.transactions.transaction import (
    GREATEST_EPOCH,
    LAST_PRODUCER_EPOCH,
    TopicPartition,
)
from schemas.error_code import ErrorCode
from schemas.messages.end_txn import EndTxnResponse
from schemas.messages.init_producer_id import InitProducerIdResponse
from tests.coordination.transactions.history import ID, NOW_MS, T0, T1, TIMEOUT_MS, History, end

V1, V2 = 4, 5


def refused(error: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=error)


def told(producer_id: int, producer_epoch: int) -> EndTxnResponse:
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def begun(*partitions: TopicPartition) -> History:
    """A producer with id 1000 and epoch 0, and these partitions in its transaction."""
    history = History()
    history.init()
    if partitions:
        history.add((1000, 0), *partitions)
    return history


@pytest.mark.parametrize(
    ("committed", "prepared", "completed"),
    [
        (True, State.PREPARE_COMMIT, State.COMPLETE_COMMIT),
        (False, State.PREPARE_ABORT, State.COMPLETE_ABORT),
    ],
)
@pytest.mark.parametrize(("version", "epoch"), [(V1, 0), (V2, 1)])
def test_the_outcome_is_written_then_the_markers_then_that_all_is_done(
    committed: bool, prepared: State, completed: State, version: int, epoch: int
) -> None:
    history = begun(T0, T1)
    before = history.transaction()
    assert before is not None
    history.now_ms += 5
    ending = before.ending(prepared, 0 if version == V1 else 2, NOW_MS + 5)
    assert (ending.state, ending.producer_epoch, ending.start_ms) == (prepared, epoch, NOW_MS)
    answer = EndTxnResponse() if version == V1 else told(1000, 1)
    assert history.decide(end((1000, 0), committed), version) == Decision(
        0, (TransactionRecord(ID, ending),), (Reply(0, answer),), endings=(Ending(ID, ending),)
    )
    history.now_ms += 5
    done = history.coordinator.complete(Ending(ID, ending), history.now_ms)
    assert done == Decision(0, (TransactionRecord(ID, ending.completed(NOW_MS + 10)),))
    history.carry_out(done)
    after = history.transaction()
    assert after is not None
    assert (after.state, after.producer_epoch, after.partitions) == (completed, epoch, frozenset())


def test_a_completion_that_comes_late_changes_nothing() -> None:
    history = begun(T0)
    (ending,) = history.decide(end((1000, 0)), V1).endings
    history.write_markers()
    history.add((1000, 0), T1)
    assert history.coordinator.complete(ending, NOW_MS) == Decision(0)


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    ("producer", "error"),
    [
        ((999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((999, 9), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((1000, 9), ErrorCode.PRODUCER_FENCED),
        ((1000, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_producer(version: int, committed: bool, producer: tuple[int, int], error: ErrorCode) -> None:
    assert begun(T0).end(producer, committed, version) == refused(error)
    assert begun().end(producer, committed, version) == refused(error)


@pytest.mark.parametrize("version", [V1, V2])
def test_an_unknown_transactional_id(version: int) -> None:
    answer = History().end((1000, 0), version=version)
    assert answer == refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@pytest.mark.parametrize("version", [V1, V2])
def test_an_old_client_learns_of_a_fault_before_it_is_told_to_wait_a_new_one_after(version: int) -> None:
    history = begun(T0)
    history.end((1000, 0), version=version)
    epoch = 0 if version == V1 else 1
    busy = refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    mapping, fenced = refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING), refused(ErrorCode.PRODUCER_FENCED)
    assert history.end((1000, epoch), version=version) == busy
    assert history.end((1000, epoch), committed=False, version=version) == busy
    assert history.end((999, epoch), version=version) == (mapping if version == V1 else busy)
    assert history.end((1000, 9), version=version) == (fenced if version == V1 else busy)


def in_state(state: State, version: int) -> History:
    """A transaction in this state; the epoch is 0, and from V2 on 1 once a transaction has ended."""
    history = begun() if state is State.EMPTY else begun(T0)
    if state not in (State.EMPTY, State.ONGOING):
        committed = state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
        history.end((1000, 0), committed, version)
        if state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            history.write_markers()
    assert history.state is state
    return history


@pytest.mark.parametrize("state", END_TXN_V1)
@pytest.mark.parametrize("asked", [Asked.COMMIT, Asked.ABORT])
def test_the_table_of_old_clients(state: State, asked: Asked) -> None:
    history = in_state(state, V1)
    answer = history.end((1000, 0), asked is Asked.COMMIT, V1)
    expected = END_TXN_V1[state][asked]
    assert answer == (refused(expected) if isinstance(expected, ErrorCode) else EndTxnResponse())
    assert bool(history.endings) is (expected is Action.END or state.name.startswith("PREPARE"))


@pytest.mark.parametrize("state", END_TXN_V2)
@pytest.mark.parametrize("asked", Asked)
def test_the_table_of_clients_that_get_an_epoch_each_time(state: State, asked: Asked) -> None:
    history = in_state(state, V2)
    transaction = history.transaction()
    assert transaction is not None
    epoch = transaction.producer_epoch
    again = asked in (Asked.COMMIT_AGAIN, Asked.ABORT_AGAIN)
    committed = asked in (Asked.COMMIT, Asked.COMMIT_AGAIN)
    answer = history.end((1000, epoch - again), committed, V2)
    expected = END_TXN_V2[state][asked]
    if isinstance(expected, ErrorCode):
        assert answer == refused(expected)
    else:
        assert answer == told(1000, epoch + (expected is Action.END))


def test_an_abort_of_nothing_gets_a_new_epoch_and_needs_no_marker() -> None:
    history = begun()
    history.now_ms += 5
    (ending,) = history.decide(end((1000, 0), committed=False), V2).endings
    assert (ending.transaction.partitions, ending.transaction.start_ms) == (frozenset(), NOW_MS + 5)
    history.write_markers()
    assert history.state is State.COMPLETE_ABORT


def test_many_transactions_with_an_epoch_each() -> None:
    history = History()
    history.init()
    for epoch in range(5):
        history.add((1000, epoch), T0, transaction_version=2)
        assert history.end((1000, epoch), epoch % 2 == 0) == told(1000, epoch + 1)
        history.write_markers()


# ---- no epoch is left


def exhausted() -> History:
    """An open transaction with the last epoch that a client may have."""
    history = History()
    history.init()
    history.give_epoch(LAST_PRODUCER_EPOCH)
    history.add((1000, LAST_PRODUCER_EPOCH), T0, transaction_version=2)
    return history


def test_the_next_producer_id_is_told_at_once_and_takes_over_when_the_markers_are_written() -> None:
    history = exhausted()
    assert history.end((1000, LAST_PRODUCER_EPOCH)) == told(1001, 0)
    ending = history.transaction()
    assert ending is not None
    assert (ending.producer_id, ending.producer_epoch) == (1000, LAST_PRODUCER_EPOCH + 1)
    history.write_markers()
    assert history.end((1000, LAST_PRODUCER_EPOCH)) == told(1001, 0)  # its answer was lost
    assert history.add((1001, 0)) is ErrorCode.NONE


def test_the_next_producer_id_takes_over_after_a_restart_too() -> None:
    history = exhausted()
    history.end((1000, LAST_PRODUCER_EPOCH))
    history.restart()
    history.write_markers()
    assert history.end((1000, LAST_PRODUCER_EPOCH)) == told(1001, 0)
    assert history.add((1001, 0)) is ErrorCode.NONE


def test_an_old_client_keeps_its_producer_id() -> None:
    history = exhausted()
    assert history.end((1000, LAST_PRODUCER_EPOCH), version=V1) == EndTxnResponse()
    history.write_markers()
    assert history.add((1000, LAST_PRODUCER_EPOCH)) is ErrorCode.NONE


def fenced_at_last() -> History:
    """A transaction that was open with the last epoch timed out, and left the greatest one that there is."""
    history = exhausted()
    history.pass_ms(TIMEOUT_MS + 20_000)
    history.write_markers()
    assert history.add((1000, GREATEST_EPOCH), T0, transaction_version=2) is ErrorCode.NONE
    return history


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_with_the_greatest_epoch_can_be_ended(committed: bool) -> None:
    history = fenced_at_last()
    assert history.end((1000, GREATEST_EPOCH), committed) == told(1001, 0)
    history.write_markers()
    assert history.end((1000, GREATEST_EPOCH), committed) == told(1001, 0)  # its answer was lost
    assert history.add((1001, 0)) is ErrorCode.NONE


def test_a_transaction_with_the_greatest_epoch_times_out() -> None:
    history = fenced_at_last()
    history.pass_ms(TIMEOUT_MS + 20_000)
    assert [ending.transaction.producer_epoch for ending in history.endings] == [GREATEST_EPOCH]
    history.write_markers()
    assert history.state is State.COMPLETE_ABORT
    history.restart()
    assert history.init() == InitProducerIdResponse(producer_id=1001, producer_epoch=0)
