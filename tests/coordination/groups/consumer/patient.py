"""A world whose clients can wait for the answers to their heartbeats."""

from __future__ import annotations

from typing import Any

from kshim.coordination.decision import Caller
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.world import G, World


class Patient(World):
    """A world whose clients can wait. `answers` has what they were answered, by token."""

    def __init__(self, **settings: Any) -> None:
        self.answers: dict[int, Any] = {}
        super().__init__(**settings)

    def _note(self, decision: Any) -> None:
        for reply in decision.replies:
            assert reply.token not in self.answers
            self.answers[reply.token] = reply.response
        super()._note(decision)

    def beat(
        self,
        member_id: str,
        epoch: int,
        patience: Patience = Patience.INTERVAL_BUT_FIRST,
        is_last: bool = True,
        **fields: Any,
    ) -> int:
        """Send a heartbeat, and return its token."""
        self._tokens += 1
        request = ConsumerGroupHeartbeatRequest(group_id=G, member_id=member_id, member_epoch=epoch, **fields)
        asked = MemberHeartbeat(request, patience=patience, is_last=is_last)
        caller = Caller(self._tokens, 1, "client", "/host")
        self._note(self.coordinator.handle(caller, asked, self.now_ms))
        return self._tokens

    def enter(self, member_id: str, *names: str, **fields: Any) -> int:
        """Send the heartbeat of a member that joins."""
        given = {
            "rebalance_timeout_ms": 5_000,
            "topic_partitions": (),
            "subscribed_topic_names": names or None,
        }
        return self.beat(member_id, 0, **given | fields)
