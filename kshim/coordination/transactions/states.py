"""The states of a transactional id, and the tables that are its specification.

`TRANSITIONS` says which state may follow which. `END_TXN_V1` and `END_TXN_V2` say what EndTxn with the right
producer id and epoch gets in each state. The pictures in the documentation are drawn from these tables.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from schemas.error_code import ErrorCode


class State(IntEnum):
    """The state of a transactional id; the number is the one in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """The state's name on the wire: "PrepareCommit"."""
        return self.name.title().replace("_", "")


BY_TEXT = {state.text: state for state in State}

TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.EMPTY: "a producer comes, or comes back",
        State.ONGOING: "the first partition is added",
        State.PREPARE_ABORT: "EndTxn aborts, although nothing was added (KIP-890)",
        State.DEAD: "nobody has used the id for transactional.id.expiration.ms",
    },
    State.ONGOING: {
        State.ONGOING: "more partitions are added",
        State.PREPARE_COMMIT: "EndTxn commits",
        State.PREPARE_ABORT: "EndTxn aborts, the time is up, or another producer comes with the same id",
    },
    State.PREPARE_COMMIT: {
        State.COMPLETE_COMMIT: "every partition has its marker",
    },
    State.PREPARE_ABORT: {
        State.COMPLETE_ABORT: "every partition has its marker",
    },
    State.COMPLETE_COMMIT: {
        State.EMPTY: "a producer comes, or comes back",
        State.ONGOING: "the first partition of the next transaction is added",
        State.PREPARE_ABORT: "EndTxn aborts, although nothing was added (KIP-890)",
        State.DEAD: "nobody has used the id for transactional.id.expiration.ms",
    },
    State.COMPLETE_ABORT: {
        State.EMPTY: "a producer comes, or comes back",
        State.ONGOING: "the first partition of the next transaction is added",
        State.PREPARE_ABORT: "EndTxn aborts, although nothing was added (KIP-890)",
        State.DEAD: "nobody has used the id for transactional.id.expiration.ms",
    },
}
"""By state: the states that may follow it, each with the cause.

Two states of Kafka are never stored and never shown by kshim. PrepareEpochFence: a transaction that is fenced
goes from Ongoing to PrepareAbort at once. Dead: such an id is deleted.
"""

ENDING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
"""States in which the outcome is decided and durable, and the markers are being written. Clients have to
repeat their requests later.
"""

IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""States without a transaction: the next one may begin, and the id may expire."""


class Action(Enum):
    """The effect of an EndTxn that is not answered with an error."""

    END = "the markers are written"
    REPEAT = "answered as the first time"


class Asked(Enum):
    """The kinds of EndTxn: by the outcome it asks for, and by the transaction whose epoch it carries."""

    COMMIT = "commit"
    ABORT = "abort"
    COMMIT_AGAIN = "commit, epoch of the last transaction"
    ABORT_AGAIN = "abort, epoch of the last transaction"


_ITS = ErrorCode.INVALID_TXN_STATE
_FENCED = ErrorCode.PRODUCER_FENCED
_BUSY = ErrorCode.CONCURRENT_TRANSACTIONS

END_TXN_V1: dict[State, dict[Asked, ErrorCode | Action]] = {
    State.EMPTY: {Asked.COMMIT: _ITS, Asked.ABORT: _ITS},
    State.ONGOING: {Asked.COMMIT: Action.END, Asked.ABORT: Action.END},
    State.PREPARE_COMMIT: {Asked.COMMIT: _BUSY, Asked.ABORT: _BUSY},
    State.PREPARE_ABORT: {Asked.COMMIT: _BUSY, Asked.ABORT: _BUSY},
    State.COMPLETE_COMMIT: {Asked.COMMIT: Action.REPEAT, Asked.ABORT: _ITS},
    State.COMPLETE_ABORT: {Asked.COMMIT: _ITS, Asked.ABORT: Action.REPEAT},
}
"""EndTxn up to v4, by state. The epoch stays the same from one transaction to the next, so a repetition looks
like a new request. Any epoch but the current one is answered PRODUCER_FENCED in every state.
"""

END_TXN_V2: dict[State, dict[Asked, ErrorCode | Action]] = {
    State.EMPTY: {
        Asked.COMMIT: _ITS,
        Asked.ABORT: Action.END,
        Asked.COMMIT_AGAIN: _FENCED,
        Asked.ABORT_AGAIN: _FENCED,
    },
    State.ONGOING: {
        Asked.COMMIT: Action.END,
        Asked.ABORT: Action.END,
        Asked.COMMIT_AGAIN: _FENCED,
        Asked.ABORT_AGAIN: _FENCED,
    },
    State.PREPARE_COMMIT: dict.fromkeys(Asked, _BUSY),
    State.PREPARE_ABORT: dict.fromkeys(Asked, _BUSY),
    State.COMPLETE_COMMIT: {
        Asked.COMMIT: _ITS,
        Asked.ABORT: Action.END,
        Asked.COMMIT_AGAIN: Action.REPEAT,
        Asked.ABORT_AGAIN: _ITS,
    },
    State.COMPLETE_ABORT: {
        Asked.COMMIT: _ITS,
        Asked.ABORT: Action.END,
        Asked.COMMIT_AGAIN: _ITS,
        Asked.ABORT_AGAIN: Action.REPEAT,
    },
}
"""EndTxn from v5 on, by state. Each transaction ends with a new epoch, so the epoch shows whether a request
repeats the last EndTxn or ends the next transaction (KIP-890).
"""
