"""The requests that only consumer groups answer, as the coordinator gets them."""

from __future__ import annotations

from typing import NamedTuple

from kshim.coordination.groups.consumer.environment import Visible, all_visible
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class MemberHeartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat, and the topics that its sender may see."""

    request: ConsumerGroupHeartbeatRequest
    visible: Visible = all_visible

    @property
    def group_id(self) -> str:
        return self.request.group_id


class DescribeConsumerGroup(NamedTuple):
    """One group of a ConsumerGroupDescribe request."""

    group_id: str
