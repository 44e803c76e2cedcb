"""Says what to change so that a rebalance does not happen again, or costs less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kshim.coordination.groups.rebalance_record import NEVER_MS, Rebalance
from kshim.coordination.groups.trigger import Gone, LastContact, Trigger

SLOW_MS = 1_000
"""The members wait for a program that takes longer than this to join."""

POLLS_LATE: Final = (
    "If its program took too long between two polls: set max.poll.records lower, do less for each record, or "
    "set max.poll.interval.ms higher."
)
JOINS_LATE: Final = (
    "The others stand still until its program polls: set max.poll.records lower, do less for each record, or "
    "use group.protocol=consumer, where they go on."
)
HEARS_LATE: Final = "A lower heartbeat.interval.ms lets members hear sooner of a rebalance."
FROZEN: Final = (
    "Look for what stopped its process: a debugger, garbage collection, a suspended machine, a limit of "
    "processor time. A longer session.timeout.ms outlasts short stops."
)
SUBSCRIPTIONS: Final = "Subscribe once, and to the same topics in all members."
ASSIGNORS: Final = "Use the same assignors in all members, in the same order."
LOG: Final = "Look in its log: clients join again after errors, or when a program calls enforceRebalance."
TOPICS: Final = "Nothing: the group takes over the topic's new partitions."
EXPIRED: Final[Mapping[LastContact | None, str]] = {
    None: "Look whether its process has ended, or stood still.",
    LastContact.CLOSED: "Close the consumer when the program ends, also on SIGTERM: then others get its "
    "partitions at once. A shorter session.timeout.ms notices a crash sooner.",
    LastContact.LOST: "Look at its host, and at the network between it and this server.",
    LastContact.ENDED: "The server's log says why it closed the connection.",
    LastContact.OPEN: FROZEN,
}
"""By what the connection of the member was like whose session has expired."""
BY_TRIGGER: Final[Mapping[Trigger, str]] = {
    Trigger.MEMBER_JOINED: "Nothing, if it was to start. With a cooperative assignor or "
    "group.protocol=consumer the others go on meanwhile.",
    Trigger.MEMBER_REJOINED: LOG,
    Trigger.LEADER_REJOINED: LOG,
    Trigger.SUBSCRIPTION_CHANGED: SUBSCRIPTIONS,
    Trigger.SUBSCRIBED: SUBSCRIPTIONS,
    Trigger.ASSIGNORS_CHANGED: ASSIGNORS,
    Trigger.ASSIGNOR_CHANGED: ASSIGNORS,
    Trigger.PARTITIONS_GIVEN_UP: "Nothing: cooperative assignors move partitions in a second rebalance. "
    "group.protocol=consumer needs none.",
    Trigger.TOPIC_CHANGED: TOPICS,
    Trigger.TOPICS_CHANGED: TOPICS,
    Trigger.REGEX_RESOLVED: "Nothing, if the group was to read them; else use a narrower expression.",
    Trigger.COORDINATOR_MOVED: "Nothing, if the server was restarted, or its leaders were moved.",
    Trigger.STATIC_MEMBER_REPLACED: ASSIGNORS,
    Trigger.MEMBER_LEFT: "Nothing, if it was to end. A member that restarts within session.timeout.ms keeps "
    "its partitions if it has a group.instance.id.",
    Trigger.MEMBER_REMOVED: "Nothing: somebody asked for it.",
    Trigger.ASKED_FOR: "Nothing: somebody asked for it.",
    Trigger.SYNC_EXPIRED: "Look what holds them up between two requests: the leader's assignor, a listener "
    "for rebalances, or a process without processor time.",
    Trigger.TOO_LARGE_TO_STORE: "Set message.max.bytes higher, or subscribe to fewer topics.",
    Trigger.PROTOCOL_CHANGED: "Nothing, if members were to go back to the classic protocol.",
    Trigger.MEMBER_EVICTED: POLLS_LATE,
    Trigger.REVOCATION_EXPIRED: "Do less when partitions are revoked, and between two polls; or set "
    "max.poll.interval.ms higher.",
    Trigger.GROUP_TOO_LARGE: "Set group.max.size higher, or start fewer members.",
}


def advice(rebalance: Rebalance) -> str:
    """The sentences to print after the story of a rebalance; the most particular ones that fit."""
    return _about_the_cause(rebalance) or _about_its_length(rebalance) or BY_TRIGGER[rebalance.trigger]


def _about_the_cause(rebalance: Rebalance) -> str:
    trigger, before = rebalance.trigger, rebalance.came_back
    if trigger is Trigger.SESSION_EXPIRED:
        gone = (part for part in rebalance.parts.values() if part.gone is Gone.EXPIRED)
        first = next(gone, None)
        if first is None:
            return BY_TRIGGER[Trigger.ASKED_FOR]
        return EXPIRED[None if first.departure is None else first.departure.contact]
    if before is not None:
        return FROZEN if before.gone is Gone.EXPIRED else POLLS_LATE
    stayed = any(
        part.departure is not None and part.departure.contact is LastContact.OPEN
        for part in rebalance.parts.values()
        if part.gone is Gone.LEFT
    )
    return POLLS_LATE if stayed and trigger is Trigger.MEMBER_LEFT else ""


def _about_its_length(rebalance: Rebalance) -> str:
    if any(part.gone is Gone.EVICTED for part in rebalance.parts.values()):
        return POLLS_LATE
    if rebalance.is_of_consumers:
        return ""
    joined = [part for part in rebalance.parts.values() if NEVER_MS not in (part.joined_ms, part.notified_ms)]
    if any(part.joined_ms - part.notified_ms > SLOW_MS for part in joined):
        return JOINS_LATE
    if any(part.notified_ms - rebalance.began_ms > SLOW_MS for part in joined):
        return HEARS_LATE
    return ""
