"""Subscriptions by regular expression: when to search the topics for matches, and what follows.

All expressions of a group are searched for together, in a decision of their own, so that one new topic sets
off one rebalance.
"""

from __future__ import annotations

import logging
from collections.abc import Set
from typing import NamedTuple

from kshim.coordination.groups.consumer.environment import Visible
from kshim.coordination.groups.consumer.group import ConsumerGroup
from kshim.coordination.groups.consumer.member import Member
from kshim.coordination.groups.consumer.recording import Cause
from kshim.coordination.groups.consumer.refused import Refused
from kshim.coordination.groups.consumer.searching import Search, fault_in
from kshim.coordination.groups.consumer.subscriptions import Resolved
from kshim.coordination.groups.consumer.targets import REFRESH_MS, assign_later, bump_if_changed
from kshim.coordination.groups.consumer.writing import Writing
from kshim.coordination.groups.timers import TimerKind
from kshim.coordination.groups.trigger import Trigger
from schemas.error_code import ErrorCode

logger = logging.getLogger(__name__)

SHORTEST_REFRESH_MS = 10_000
"""A heartbeat without a new expression sets off another search after this long at the earliest, in ms."""

PAUSE_MS = 100
"""The pause between two searches for new topics, in ms, for each slice of a few ms that the first one took;
at most SHORTEST_REFRESH_MS. So many topics that are created one by one do not set off a rebalance each, and
searches leave most of the time to others."""

MOST_MATCHES = 3_000
"""After so many matches are written the rest follows in another decision: they take about 10 ms."""

MOST_TARGETS = 3_000
"""The most topics in members' targets that are looked at after a search. If there are more, the group
rebalances."""


def check_regex(it: Writing, member: Member) -> None:
    """Refuse an expression that is invalid, unless a member uses it already."""
    if member.regex and member.regex not in it.group.subscriptions.regexes:
        fault = fault_in(member.regex)
        if fault is not None:
            raise Refused(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{member.regex}` is not a valid regular expression: {fault}.",
            )


class Searched(NamedTuple):
    """A group's expressions as a request found them."""

    has_any: bool
    resolved: int
    """How many are resolved."""
    last: Resolved

    @classmethod
    def of(cls, group: ConsumerGroup) -> Searched:
        """The expressions of a group now."""
        known = group.subscriptions
        return cls(bool(known.regexes), len(known.resolved), known.last_resolved())


def change_regex(it: Writing, old: Member, new: Member) -> bool:
    """Forget the expression that a member no longer uses, if no other member does. The member's new
    subscription is written already.

    Return True if the change counts at once: the new expression is resolved, or there is none any more.
    """
    if old.regex == new.regex:
        return False
    it.forget_regexes((old.regex,))
    return new.regex in it.group.subscriptions.resolved or not new.regex


def maybe_search(it: Writing, before: Searched, is_new: bool, visible: Visible) -> None:
    """Search the topics for matches soon, if there is a reason to.

    before: the group as the request found it. is_new: the request brings an expression that no member used.
    visible: the topics that the request's sender may see; others will not match.
    """
    it.group.visible = visible
    used = it.group.subscriptions.regexes
    if not (is_new or before.has_any) or not used or it.is_armed(TimerKind.REGEX):
        return
    if is_new or len(used) != before.resolved:
        it.arm(TimerKind.REGEX, "", it.group.search_at_ms - it.now_ms)
        return
    since_ms = it.now_ms - before.last.timestamp_ms
    has_new_topics = before.last.version < it.environment.topics.version()
    is_old = since_ms > it.settings.group_consumer_regex_refresh_interval_ms
    if since_ms > SHORTEST_REFRESH_MS and (has_new_topics or is_old):
        it.arm(TimerKind.REGEX, "", 0)


def search_new_topics(it: Writing) -> None:
    """Search the topics for matches, if topics were created after the last search, or an expression was not
    part of it.

    Without a heartbeat since the shard was loaded nobody knows which topics the members may see. The first
    heartbeat will set off the search.
    """
    group, known = it.group, it.group.subscriptions
    if group.visible is None or group.search is not None or it.is_armed(TimerKind.REGEX):
        return
    is_complete = len(known.regexes) == len(known.resolved)
    has_new_topics = known.last_resolved().version < it.environment.topics.version()
    if not is_complete or (known.regexes and has_new_topics):
        it.arm(TimerKind.REGEX, "", group.search_at_ms - it.now_ms)


def go_on_searching(it: Writing) -> None:
    """Search for a moment. At the end write the matches of the group's expressions, in several decisions if
    they are many, and in the last one a new group epoch if they have changed.

    A search that fails writes nothing; another one begins later.
    """
    group = it.group
    try:
        search = group.search = group.search or _new_search(it)
        is_done = search.go_on()
    except Exception:
        logger.exception("internal error: group %s: the search for topics has failed", group.group_id)
        group.search = None
        it.arm(TimerKind.REGEX, "", SHORTEST_REFRESH_MS)
        return
    if not is_done or not _write_matches(it, search):
        it.arm(TimerKind.REGEX, "", 0)
        return
    group.search = None
    for regex, fault in search.faults.items():
        logger.error("group %s: ignored the invalid expression `%s`: %s", group.group_id, regex, fault)
    group.search_at_ms = it.now_ms + min(PAUSE_MS * search.slices, SHORTEST_REFRESH_MS)
    search.has_changes = search.has_changes or _is_to_give_up(it, search.without_match)
    it.noted.cause = Cause(Trigger.REGEX_RESOLVED) if search.has_changes else None
    if search.is_used and bump_if_changed(it, search.has_changes):
        group.refresh_at = (it.now_ms + REFRESH_MS, group.epoch)
    assign_later(it)
    search_new_topics(it)


def _new_search(it: Writing) -> Search:
    group, topics = it.group, it.environment.topics
    names = topics.names()
    visible = names if group.visible is None else group.visible(names)
    regexes = tuple(group.subscriptions.regexes)
    return Search(regexes, sorted(visible), topics.version(), it.now_ms)


def _write_matches(it: Writing, search: Search) -> bool:
    """Write the matches of some expressions; return True if those were the last."""
    known, left = it.group.subscriptions, MOST_MATCHES
    while search.found and left > 0:
        regex, matches = next(iter(search.found.items()))
        del search.found[regex]
        left -= len(matches)
        if regex in known.regexes:
            search.is_used = True
            before, now = known.resolved.get(regex), frozenset(matches)
            search.has_changes |= now != (frozenset() if before is None else before.topics)
            if before is None and not now:
                search.without_match.add(regex)
            it.put_regex(regex, Resolved(now, search.version, search.began_ms))
    return not search.found


def _is_to_give_up(it: Writing, without_match: Set[str]) -> bool:
    """True if the target gives a member partitions that it had by another expression, or may do so.

    without_match: new expressions that match nothing. Apache Kafka leaves the partitions in the target, and
    nobody reads them.
    """
    group, left = it.group, MOST_TARGETS
    if not without_match:
        return False
    if group.computation is not None:
        return True  # it may have begun before the expression changed
    for member in group.members.values():
        if member.regex not in without_match:
            continue
        target = group.target_of(member)
        left -= len(target)
        topics = map(it.environment.topics.with_id, target)
        if left < 0 or any(each and not group.subscriptions.subscribes(member, each.name) for each in topics):
            return True
    return False
