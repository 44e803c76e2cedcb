"""The requests that only consumer groups answer, as the coordinator gets them."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kshim.coordination.groups.consumer.environment import Visible, all_visible
from kshim.coordination.groups.consumer.topic_names import UNPREPARED, Prepared
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class Patience(Enum):
    """How long a client can wait for the answer to a heartbeat."""

    NONE = "not at all"
    INTERVAL = "for less than the interval that it was last given"
    INTERVAL_BUT_FIRST = "like INTERVAL, but longer for the first answer, before which it was given none"
    LONG = "for some seconds"


class MemberHeartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat, the topics that its sender may see, and how long the sender can wait."""

    request: ConsumerGroupHeartbeatRequest
    visible: Visible = all_visible
    patience: Patience = Patience.NONE
    is_last: bool = True
    """False if another request follows on the connection: then the answer must not wait."""
    prepared: Prepared = UNPREPARED

    @property
    def group_id(self) -> str:
        return self.request.group_id


class DescribeConsumerGroup(NamedTuple):
    """One group of a ConsumerGroupDescribe request."""

    group_id: str
