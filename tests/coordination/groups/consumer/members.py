"""Members of a consumer group at a runtime with the test's own journal and clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshim.coordination.group_runtime import GroupRuntime
from kshim.coordination.groups.consumer.environment import Environment, all_visible
from kshim.coordination.groups.consumer.requests import MemberHeartbeat, Patience
from kshim.coordination.groups.coordinator import Coordinator
from kshim.coordination.groups.seen import SeenMember
from kshim.coordination.groups.settings import Settings
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.api.harness import context, later
from tests.coordination.groups.consumer.world import FakeConfigs, FakeTopics
from tests.coordination.held_runtime import Server

G = "a"
SESSION_S = 45


class Members(Server):
    """A server whose topic foo has two partitions."""

    def start(self) -> GroupRuntime:
        self.topics = FakeTopics()
        self.topics.put("foo", 2)
        settings = Settings()
        environment = Environment(FakeConfigs(), lambda: "id", self.topics, ("uniform",))
        coordinator = Coordinator(settings, lambda prefix: f"{prefix}-id", 2, environment=environment)
        self.runtime = GroupRuntime(coordinator, self.journal, self.clock)
        self.runtime.start()
        return self.runtime

    def members(self) -> Sequence[SeenMember]:
        """The members of the group."""
        seen = self.runtime.see(G)
        assert seen is not None
        return tuple(seen.members)

    def heartbeat_at_once(self, epoch: int, member_id: str = "m") -> Any:
        """The answer to a heartbeat that says nothing, of a client that cannot wait."""
        request = ConsumerGroupHeartbeatRequest(group_id=G, member_id=member_id, member_epoch=epoch)
        return later(self.runtime.member_heartbeat(context(1), request, all_visible, Patience.NONE))

    def member(self, epoch: int, member_id: str = "m") -> Any:
        """The answer to a heartbeat, once it is there."""
        more: dict[str, Any] = {}
        if epoch == 0:
            names = ("foo",)
            more = {"rebalance_timeout_ms": 5_000, "topic_partitions": (), "subscribed_topic_names": names}
        request = ConsumerGroupHeartbeatRequest(group_id=G, member_id=member_id, member_epoch=epoch, **more)
        return self.submit(MemberHeartbeat(request), 1)
