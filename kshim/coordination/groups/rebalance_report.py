"""Why a rebalance happened and how long it took: soft state, kept for people.

Apache Kafka logs a reason when a rebalance starts and forgets it. Here the cause stays with the rebalance
until it is complete, together with its phases, so that "why did my group rebalance?" has one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Trigger(StrEnum):
    """What set a rebalance off, in the words that people read."""

    MEMBER_JOINED = "a member joined"
    MEMBER_REJOINED = "a member joined again with another subscription"
    LEADER_REJOINED = "the leader joined again"
    STATIC_MEMBER_REPLACED = "a static member came back under a new id"
    MEMBER_LEFT = "a member left"
    SESSION_EXPIRED = "a member's session expired"
    SYNC_EXPIRED = "members did not send SyncGroup in time"
    TOO_LARGE_TO_STORE = "its subscriptions and assignments exceed message.max.bytes"
    GROUP_TOO_LARGE = "the group is larger than group.max.size"


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """One rebalance. Times are the coordinator's, in ms."""

    group_id: str
    trigger: Trigger
    member_id: str
    reason: str
    started_ms: int
    joined_ms: int = -1
    """When the join phase ended."""
    completed_ms: int = -1
    generation: int = -1
    members: int = 0
    evicted: tuple[str, ...] = ()

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        evicted = f"; evicted {', '.join(self.evicted)}" if self.evicted else ""
        return (
            f"group {self.group_id}: generation {self.generation} with {self.members} member(s) after "
            f"{self.completed_ms - self.started_ms} ms, because {self.trigger}: "
            f"{self.member_id}{reason}{evicted}"
        )
