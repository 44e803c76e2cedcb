"""What consumer groups need of the cluster around them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from kshim.coordination.groups.consumer.topics import Topics
from kshim.coordination.groups.settings import Settings

Visible = Callable[[Collection[str]], Collection[str]]
"""Returns those of some topics that a client may see."""


def all_visible(topics: Collection[str]) -> Collection[str]:
    """The `Visible` of a client that may see every topic."""
    return topics


class GroupConfigs(Protocol):
    """Settings that may differ from group to group. They are looked up whenever they are needed."""

    def at(self, node_id: int) -> GroupConfigs:
        """The settings of groups whose coordinator is broker `node_id`."""

    def session_timeout_ms(self, group_id: str) -> int:
        """After how long a silent member is removed."""

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats."""

    def is_interval_set(self, group_id: str) -> bool:
        """True if somebody has set how often. Else members whose heartbeats wait send them more often."""

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long after a target the next one may be computed."""


class SameConfigs:
    """Implements `GroupConfigs`: the broker's settings hold for all groups."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def at(self, node_id: int) -> SameConfigs:
        """See `GroupConfigs`."""
        return self

    def session_timeout_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._settings.group_consumer_session_timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._settings.group_consumer_heartbeat_interval_ms

    def is_interval_set(self, group_id: str) -> bool:
        """See `GroupConfigs`."""
        return self._settings.is_consumer_interval_set

    def assignment_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._settings.group_consumer_assignment_interval_ms


class Environment(NamedTuple):
    """Held once by a coordinator."""

    configs: GroupConfigs
    new_member_id: Callable[[], str]
    """Makes the id of a member that brings none: 22 characters of a random UUID."""
    topics: Topics
    assignors: tuple[str, ...]
    """Those of `group.consumer.assignors`; the first one is used if no member asks for one."""
