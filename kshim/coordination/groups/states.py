"""The states of a classic group, and the two tables that are its specification.

`TRANSITIONS` says which state may follow which; `ClassicGroup.transition_to` asserts it. `ANSWERS` says how a
request from a valid member with the right generation is answered in each state, for the requests whose answer
depends on the state alone. The pictures in the documentation are drawn from these tables.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode


class State(StrEnum):
    """A classic group's state; the value is its name on the wire (DescribeGroups, ListGroups)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[State, dict[State, str]] = {
    State.EMPTY: {
        State.PREPARING_REBALANCE: "the first member joins; the initial rebalance delay begins (KIP-134)",
        State.DEAD: "the group's shard is given up",
    },
    State.PREPARING_REBALANCE: {
        State.EMPTY: "the join phase ends and nobody has joined",
        State.COMPLETING_REBALANCE: "everybody has joined, or the largest rebalance timeout is up (KIP-62)",
        State.DEAD: "the group's shard is given up",
    },
    State.COMPLETING_REBALANCE: {
        State.PREPARING_REBALANCE: "a member comes, goes, changes its subscription, or never sends SyncGroup",
        State.STABLE: "the leader sends SyncGroup with everybody's assignment",
        State.DEAD: "the group's shard is given up",
    },
    State.STABLE: {
        State.PREPARING_REBALANCE: "a member comes, goes or changes its subscription; the leader joins again",
        State.DEAD: "the group's shard is given up",
    },
    State.DEAD: {State.DEAD: "the group's shard is given up once more"},
}
"""By state: the states that may follow it, each with the cause."""

CAN_REBALANCE = frozenset(
    state for state, following in TRANSITIONS.items() if State.PREPARING_REBALANCE in following
)
"""States from which a rebalance can start."""


class Action(Enum):
    """The treatment of a request in a state that does not refuse it."""

    ACCEPT = "done, and answered NONE"
    PARK = "parked until the phase completes"
    ANSWER = "answered from the group as it stands"
    COMPARE = "answered from the group when nothing changed, else a new rebalance and parked"


ANSWERS: dict[ApiKey, dict[State, ErrorCode | Action]] = {
    ApiKey.JOIN_GROUP: {
        State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
        State.PREPARING_REBALANCE: Action.PARK,
        State.COMPLETING_REBALANCE: Action.COMPARE,
        State.STABLE: Action.COMPARE,
        State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    },
    ApiKey.SYNC_GROUP: {
        State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
        State.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
        State.COMPLETING_REBALANCE: Action.PARK,
        State.STABLE: Action.ANSWER,
        State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    },
    ApiKey.HEARTBEAT: {
        State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
        State.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
        State.COMPLETING_REBALANCE: ErrorCode.NONE,
        State.STABLE: ErrorCode.NONE,
        State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    },
    ApiKey.OFFSET_COMMIT: {
        State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
        State.PREPARING_REBALANCE: Action.ACCEPT,
        State.COMPLETING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
        State.STABLE: Action.ACCEPT,
        State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    },
    ApiKey.TXN_OFFSET_COMMIT: {
        State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
        State.PREPARING_REBALANCE: Action.ACCEPT,
        State.COMPLETING_REBALANCE: Action.ACCEPT,
        State.STABLE: Action.ACCEPT,
        State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    },
    ApiKey.DELETE_GROUPS: {
        State.EMPTY: Action.ACCEPT,
        State.PREPARING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
        State.COMPLETING_REBALANCE: ErrorCode.NON_EMPTY_GROUP,
        State.STABLE: ErrorCode.NON_EMPTY_GROUP,
        State.DEAD: ErrorCode.GROUP_ID_NOT_FOUND,
    },
}
"""By API and state: the answer to a valid member's request with the right generation, and to any
DeleteGroups.
"""
