"""The causes of rebalances and of departures, in the words that people read."""

from __future__ import annotations

from enum import StrEnum


class Trigger(StrEnum):
    """The cause of a rebalance."""

    MEMBER_JOINED = "a member joined"
    MEMBER_REJOINED = "a member joined again"
    SUBSCRIPTION_CHANGED = "a member joined again with another subscription"
    ASSIGNORS_CHANGED = "a member joined again with other assignors"
    PARTITIONS_GIVEN_UP = "a member gave up partitions that others are to get"
    LEADER_REJOINED = "the leader joined again"
    TOPIC_CHANGED = "a topic changed, and the leader joined again"
    COORDINATOR_MOVED = "the coordinator had moved or restarted, and a member joined again"
    STATIC_MEMBER_REPLACED = "a static member came back under a new id"
    MEMBER_LEFT = "a member left"
    MEMBER_REMOVED = "an administrator removed a member"
    ASKED_FOR = "an administrator asked for it"
    SESSION_EXPIRED = "a member's session expired"
    SYNC_EXPIRED = "members did not send SyncGroup in time"
    TOO_LARGE_TO_STORE = "its subscriptions and assignments exceed message.max.bytes"
    PROTOCOL_CHANGED = "the last member of the consumer protocol is gone"
    SUBSCRIBED = "a member changed its subscription"
    ASSIGNOR_CHANGED = "members ask for another assignor"
    TOPICS_CHANGED = "a topic changed"
    REGEX_RESOLVED = "an expression matches other topics"
    MEMBER_EVICTED = "a member did not join in time"
    REVOCATION_EXPIRED = "a member did not give up partitions in time"
    GROUP_TOO_LARGE = "the group is larger than group.max.size"


class Gone(StrEnum):
    """How a member ceased to be a member."""

    LEFT = "left"
    REMOVED = "removed"
    """An administrator removed it."""
    EXPIRED = "expired"
    """Its session ended without a heartbeat."""
    ENDED = "ended"
    """An administrator ended its session."""
    EVICTED = "evicted"
    """It did not join before the rebalance timeout."""
    SILENT = "silent"
    """It did not send SyncGroup before the rebalance timeout."""
    UNREVOKED = "unrevoked"
    """It did not give up partitions before the rebalance timeout."""
    REPLACED = "replaced"
    """Another client came with its group instance id."""
    REFUSED = "refused"
    """It joined again when group.max.size members had joined already."""


class LastContact(StrEnum):
    """The state of a member's connection when it had ceased to be a member."""

    OPEN = "open"
    CLOSED = "closed"
    """Its client had closed the connection; the system does so, too, for a process that is killed."""
    LOST = "lost"
    """Its host did not answer any more."""
    ENDED = "ended"
    """The server had closed it."""
