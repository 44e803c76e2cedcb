"""Describes a rebalance in sentences: why it began, who was waited for, what moved, and who stood still."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kshim.coordination.groups.rebalance_record import NEVER_MS, Part, Rebalance, Who
from kshim.coordination.groups.trigger import Gone, LastContact
from kshim.recorder.naming import short_names
from kshim.recorder.ownership import Effect, Partition

MOST_NAMES = 5
"""Most members or partitions that a sentence names. It counts the others."""
NOTICEABLE_MS = 50
"""A member is mentioned if it takes longer than this to hear of a rebalance, or to join after that."""

GONE = {
    Gone.LEFT: "left",
    Gone.REMOVED: "was removed by an administrator",
    Gone.EXPIRED: "was not heard of any more, and its session expired",
    Gone.ENDED: "was removed as if its session had expired",
    Gone.EVICTED: "did not join before the rebalance timeout, and was removed",
    Gone.SILENT: "did not send SyncGroup before the rebalance timeout, and was removed",
    Gone.UNREVOKED: "did not give up partitions before the rebalance timeout, and was removed",
    Gone.REPLACED: "was replaced by another with its group.instance.id",
    Gone.REFUSED: "found no room, as the group is as large as group.max.size allows",
}

EXCEEDED = "probably exceeded max.poll.interval.ms, or unsubscribed."
BUSY = "{name} stayed connected: its program was still busy, and did not poll."
STAYED = {
    Gone.LEFT: "{name} stayed connected: its program " + EXCEEDED,
    Gone.EXPIRED: "The connection of {name} stayed open, but silent: its process stood still, or the network "
    "loses what it sends.",
    Gone.EVICTED: BUSY,
    Gone.UNREVOKED: BUSY,
}
"""What an open connection says about a member that is gone."""
ENDED = {
    LastContact.CLOSED: "The connection of {name} had been closed: its process was killed, or ended without "
    "closing its consumer.",
    LastContact.LOST: "The connection of {name} had been lost: its host did not answer any more.",
    LastContact.ENDED: "The server had closed the connection of {name}.",
}
"""What an ended connection says about a member whose session has expired."""
CAME_BACK = {
    Gone.LEFT: "left",
    Gone.EXPIRED: "lost its session",
}


def story(rebalance: Rebalance, effect: Effect) -> list[str]:
    """The sentences, in the order in which things happened."""
    names = names_of(rebalance, effect)
    return [
        _beginning(rebalance, names),
        *_came_back(rebalance),
        *_gone(rebalance, names),
        *(_heard_and_revoked(rebalance, names) if rebalance.is_of_consumers else _waiting(rebalance, names)),
        *_vote(rebalance),
        *_end(rebalance, names),
        *_moved(effect, names),
        *_paused(rebalance, effect, names),
    ]


def names_of(rebalance: Rebalance, effect: Effect) -> Mapping[str, str]:
    """Short names, by member id, of all members that the description may name."""
    before = (moved.before for moved in effect.moved if moved.before is not None)
    everybody = (*(part.who for part in rebalance.parts.values()), *rebalance.members, *before)
    return short_names(everybody)


def seconds(ms: float) -> str:
    """A duration for people: "0.123 s", "12.3 s"."""
    return f"{ms / 1000:.3f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def listed(names: Iterable[str], most: int = MOST_NAMES, count: int | None = None) -> str:
    """Join names: "a", "a and b", "a, b and 7 others".

    count: how many names there are in all, if `names` has only the first ones.
    """
    known = list(names)
    count = len(known) if count is None else count
    if count > most:
        known = [*known[: most - 1], f"{count - most + 1} others"]
    return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)


def partitions(named: Sequence[Partition]) -> str:
    """Name partitions: "orders-0 and orders-1"."""
    shown = (f"{topic}-{partition}" for topic, partition in named[:MOST_NAMES])
    return listed(shown, count=len(named))


def _beginning(rebalance: Rebalance, names: Mapping[str, str]) -> str:
    who = listed(_introduced(each, names) for each in rebalance.members)
    said = f', who said "{rebalance.reason}"' if rebalance.reason else ""
    detail = f" ({rebalance.detail})" if rebalance.detail else ""
    return f"The group rebalanced because {rebalance.trigger}{detail}{': ' if who else ''}{who}{said}."


def _came_back(rebalance: Rebalance) -> Iterator[str]:
    """Say that the member that joined has been one before, on the same connection."""
    before = rebalance.came_back
    if before is not None and before.gone is not None:
        how = CAME_BACK.get(before.gone, "was removed")
        ago = seconds(max(rebalance.began_ms - before.gone_ms, 0))
        said = "." if before.gone is not Gone.LEFT else f", and stayed connected: it {EXCEEDED}"
        yield f"It is the same program that {how} {ago} before{said}"


def _introduced(who: Who, names: Mapping[str, str]) -> str:
    host = who.client_host.removeprefix("/")
    client = f"client {who.client_id}" if who.client_id != names[who.member_id] else "client"
    at = f"{client} at {host}" if host else client
    return f"{names[who.member_id]} ({at})"


def _gone(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    for part in rebalance.parts.values():
        if part.gone is None:
            continue
        heard = ""
        if part.heard_ms != NEVER_MS:
            heard = f", {seconds(part.gone_ms - part.heard_ms)} after its last sign of life"
        name = names[part.who.member_id]
        yield f"{name} {GONE[part.gone]}{heard}."
        said = _contact(part)
        if said:
            yield said.format(name=name)


def _contact(part: Part) -> str:
    """What the connection of a member that is gone says about it, with its {name}; empty for nothing."""
    contact = None if part.departure is None else part.departure.contact
    if contact is None or part.gone is None:
        return ""
    if contact is LastContact.OPEN:
        return STAYED.get(part.gone, "")
    return ENDED[contact] if part.gone is Gone.EXPIRED else ""


def _waiting(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    joined = [part for part in rebalance.parts.values() if part.joined_ms != NEVER_MS and part.gone is None]
    if not joined:
        return
    last = max(joined, key=lambda part: part.joined_ms)
    after_ms = last.joined_ms - rebalance.began_ms
    count = f"{len(joined)} members" if len(joined) > 1 else "One member"
    if len(joined) == 1 and not after_ms:
        yield f"One member joined, {names[last.who.member_id]}."
    else:
        yield (
            f"{count} joined; the last was {names[last.who.member_id]}, after {seconds(after_ms)}"
            f"{_why_late(rebalance, last)}."
        )
    more_ms = rebalance.joined_ms - last.joined_ms
    if rebalance.joined_ms == NEVER_MS or more_ms < NOTICEABLE_MS:
        return
    evicted = [part for part in rebalance.parts.values() if part.gone is Gone.EVICTED]
    if evicted:
        missed = listed(names[part.who.member_id] for part in evicted)
        yield f"The others waited {seconds(more_ms)} more for {missed}."
    elif rebalance.delay_ms:
        name = f"group.initial.rebalance.delay.ms={rebalance.delay_ms}"
        yield f"The new group waited {seconds(more_ms)} more for others ({name})."
    elif not any(part.before for part in rebalance.parts.values()):
        yield f"The join phase ended {seconds(more_ms)} later, as the server was busy."
    else:
        yield f"They waited {seconds(more_ms)} more for a member that was given an id, and did not come back."


def _heard_and_revoked(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    """Say when members of a consumer group heard of their new assignments, and gave up partitions."""
    yield from _heard(rebalance, names)
    yield from _revocations(rebalance, names)


def _heard(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    """Say which members heard by a heartbeat that had waited for news, and which with their next one."""
    began_ms, causes = rebalance.began_ms, {each.member_id for each in rebalance.members}
    others = [
        part
        for part in rebalance.parts.values()
        if part.notified_ms != NEVER_MS and part.joined_ms == NEVER_MS and part.gone is None
        if part.who.member_id not in causes
    ]
    released = [part for part in others if part.is_released]
    if released:
        last_ms = max(part.notified_ms for part in released) - began_ms
        who = listed(names[part.who.member_id] for part in released)
        yield f"{who} heard of it after {seconds(last_ms)}, by an answer that had waited for news."
    late = [part for part in others if not part.is_released]
    if late:
        last = max(late, key=lambda part: part.notified_ms)
        who = listed(names[part.who.member_id] for part in late)
        up_to = "up to " if len(late) > 1 else ""
        after = seconds(last.notified_ms - began_ms)
        yield f"{who} heard of it after {up_to}{after}, with the next heartbeat."


def _revocations(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    """Say which member of a consumer group was the last that gave up partitions."""
    gave_up = [part for part in rebalance.parts.values() if part.joined_ms != NEVER_MS]
    if not gave_up:
        return
    last = max(gave_up, key=lambda part: part.joined_ms)
    asked_ms, took_ms = last.notified_ms - rebalance.began_ms, last.joined_ms - last.notified_ms
    name = names[last.who.member_id]
    how = ", by an answer that had waited for news," if last.is_released else ""
    said = f"{seconds(asked_ms)} after the beginning it was asked to{how or ','} and took {seconds(took_ms)}"
    if len(gave_up) == 1:
        yield f"{name} gave up partitions: {said}."
    else:
        yield f"{len(gave_up)} members gave up partitions; the last was {name}: {said}."


def _why_late(rebalance: Rebalance, part: Part) -> str:
    if part.notified_ms == NEVER_MS or part.joined_ms - rebalance.began_ms < NOTICEABLE_MS:
        return ""
    heard_ms, needed_ms = part.notified_ms - rebalance.began_ms, part.joined_ms - part.notified_ms
    if needed_ms >= max(heard_ms, NOTICEABLE_MS):
        return f": it heard of the rebalance after {seconds(heard_ms)}, and took {seconds(needed_ms)} to join"
    return f": it heard of the rebalance only after {seconds(heard_ms)}, with its heartbeat"


def _vote(rebalance: Rebalance) -> Iterator[str]:
    if len(rebalance.votes) > 1:
        votes = listed(f"{name} ({count})" for name, count in sorted(rebalance.votes.items()))
        yield f"The members voted for {votes}: {rebalance.protocol} won."


def _end(rebalance: Rebalance, names: Mapping[str, str]) -> Iterator[str]:
    took = seconds(rebalance.ended_ms - rebalance.began_ms)
    if not rebalance.is_complete:
        yield f"After {took} it gave way to the next rebalance, before all members had an assignment."
        return
    if rebalance.assigned_ms == NEVER_MS:
        yield "The group has no members left."
        return
    if rebalance.is_of_consumers:
        yield f"It took {took} until all had their assignments."
        return
    leader_ms = rebalance.assigned_ms - rebalance.joined_ms
    if leader_ms >= NOTICEABLE_MS:
        leader = names.get(rebalance.leader, rebalance.leader)
        yield f"The leader, {leader}, took {seconds(leader_ms)} to assign the partitions."
    assigned_ms = rebalance.assigned_ms
    late = [part for part in rebalance.parts.values() if part.synced_ms - assigned_ms >= NOTICEABLE_MS]
    if late:
        last = max(late, key=lambda part: part.synced_ms)
        after_ms = last.synced_ms - assigned_ms
        yield f"{names[last.who.member_id]} asked for its assignment {seconds(after_ms)} later."
    yield f"It took {took} until all had their assignments."


def _moved(effect: Effect, names: Mapping[str, str]) -> Iterator[str]:
    ways: dict[tuple[str, str], list[Partition]] = {}
    for moved in effect.moved:
        if moved.before is not None:
            way = names[moved.before.member_id], names[moved.after.member_id]
            ways.setdefault(way, []).append(moved.partition)
    for (before, after), along in ways.items():
        yield f"{partitions(along)} moved from {before} to {after}."
    times = [moved.unowned_ms for moved in effect.moved if moved.unowned_ms is not None]
    if times and max(times) > 0:
        yield f"What moved had no owner for up to {seconds(max(times))}."
    if effect.without_owner:
        yield f"Nobody has {partitions(effect.without_owner)} now."


def _paused(rebalance: Rebalance, effect: Effect, names: Mapping[str, str]) -> Iterator[str]:
    paused = {
        member_id: ms
        for member_id, ms in effect.paused_ms.items()
        if ms > 0 and rebalance.parts[member_id].before
    }
    if paused:
        longest = max(paused, key=paused.__getitem__)
        if len(paused) == 1:
            yield f"{names[longest]} did not consume for {seconds(paused[longest])}."
        else:
            yield (
                f"{len(paused)} members did not consume meanwhile, {names[longest]} the longest: "
                f"{seconds(paused[longest])}."
            )
