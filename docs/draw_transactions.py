"""Draw the diagram and the tables of docs/transactions.md from `kshim/coordination/transactions/states.py`.

python -m docs.draw_transactions        rewrites the text between the markers of docs/transactions.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docs.draw_coordinator import drawn as _drawn
from kshim.coordination.transactions.states import END_TXN_V1, END_TXN_V2, TRANSITIONS, Action, Asked, State
from schemas.error_code import ErrorCode

PAGE = Path(__file__).with_name("transactions.md")


def diagram() -> str:
    """The states and their transitions as Mermaid text; Dead, the end of an id, is Mermaid's end `[*]`."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> Empty"]
    for state, following in TRANSITIONS.items():
        lines += [
            f"    {state.text} --> {'[*]' if next_state is State.DEAD else next_state.text}"
            for next_state in following
            if next_state is not state
        ]
    return "\n".join([*lines, "```"])


def transitions() -> str:
    """A row for each legal transition."""
    rows = ["| From | To | When |", "|---|---|---|"]
    for state, following in TRANSITIONS.items():
        rows += [f"| {state.text} | {next_state.text} | {when} |" for next_state, when in following.items()]
    return "\n".join(rows)


def end_txn_v1() -> str:
    """EndTxn of clients that keep their epoch: a row for each request, a column for each state."""
    return _table([Asked.COMMIT, Asked.ABORT], END_TXN_V1)


def end_txn_v2() -> str:
    """EndTxn of clients that get a new epoch with each transaction; rows and columns as above."""
    return _table(list(Asked), END_TXN_V2)


def _table(asked: list[Asked], table: Mapping[State, Mapping[Asked, ErrorCode | Action]]) -> str:
    rows = ["| EndTxn | " + " | ".join(state.text for state in table) + " |", "|---" * (len(table) + 1) + "|"]
    for what in asked:
        answers = (_answer(by_asked[what]) for by_asked in table.values())
        rows.append(f"| {what.value} | " + " | ".join(answers) + " |")
    return "\n".join(rows)


def _answer(answer: ErrorCode | Action) -> str:
    return answer.value if isinstance(answer, Action) else answer.name


def drawn(page: str) -> str:
    """`page` with each of its blocks redrawn."""
    return _drawn(page, (diagram, transitions, end_txn_v1, end_txn_v2))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
