"""ListTransactions: the filter by a regular expression; the others are the coordinator's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.api import list_transactions as list_transactions_module
from kshim.api.list_transactions import list_transactions
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from tests.api.harness import AtOnce, NoTransactions, ask, new_broker

LOADING = ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
THREE = ListTransactionsResponse(
    transaction_states=tuple(
        TransactionState(transactional_id=name, producer_id=1, transaction_state="Empty")
        for name in ("a", "b", "long")
    )
)


class Transactions(NoTransactions):
    def __init__(self, listed: ListTransactionsResponse) -> None:
        self.listed = listed

    async def submit(self, context: RequestContext, request: Any) -> ListTransactionsResponse:
        return self.listed


def listed(pattern: str | None, known: ListTransactionsResponse = THREE) -> ListTransactionsResponse:
    aside = AtOnce()
    broker = replace(new_broker(), transactions=Transactions(known), aside=aside)
    answer: ListTransactionsResponse = ask(
        list_transactions, broker, ListTransactionsRequest(transactional_id_pattern=pattern), 2
    )
    assert bool(aside.count) == bool(pattern and not known.error_code)
    return answer


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["a", "b", "long"]),
        ("", ["a", "b", "long"]),
        ("l.*g|a", ["a", "long"]),
        ("o", []),  # the pattern must match the whole id
    ],
)
def test_by_pattern(pattern: str | None, names: list[str]) -> None:
    assert [each.transactional_id for each in listed(pattern).transaction_states] == names


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?P<n", "\\"])
def test_what_is_no_regular_expression(pattern: str) -> None:
    assert listed(pattern) == ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    assert listed(pattern, LOADING) == LOADING


def test_ids_are_matched_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_transactions_module, "STEPS_AT_ONCE", 1)
    assert [each.transactional_id for each in listed("a|b").transaction_states] == ["a", "b"]
