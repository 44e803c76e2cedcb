"""The rebalances of a run, derived from its events: what triggered each, and how long it took."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kshim.demo.events import (
    Assigned,
    Committed,
    Event,
    Joining,
    Killed,
    Partitions,
    Ready,
    Revoked,
    Stopping,
)
from kshim.demo.scene import SERVER

JOINS = "joins"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """An event that makes the group rebalance: a member joins or goes, or the server was down too long."""

    at_ms: int
    name: str
    verb: str

    def answered_by(self, members: Iterable[str]) -> bool:
        """True if a generation with these members reflects the trigger."""
        return self.name == SERVER or (self.name in members) == (self.verb == JOINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A rebalance, or a restart of the server during which the group kept its generation."""

    cause: str
    before: int | None
    """The generation before; None for the first."""
    after: int
    members: tuple[tuple[str, Partitions], ...]
    began_ms: int
    """When it was triggered."""
    noticed_ms: int | None
    """When the first of the old members gave its partitions back."""
    done_ms: int
    """When the last member got its partitions; after a restart, when all have committed again."""
    kept: bool = False
    """True if the group kept its generation through a restart: `before == after`."""

    @property
    def took_ms(self) -> int:
        """Milliseconds from the trigger to the end."""
        return self.done_ms - self.began_ms


def rebalances(history: Sequence[Event]) -> tuple[Rebalance, ...]:
    """Every generation of the group, and each restart of the server that it outlived, by time."""
    events = sorted(history, key=lambda event: event.at_ms)
    restarts = list(_restarts(events))
    outlived = {restart.began_ms for restart in restarts}
    found = [*_generations(events, outlived), *restarts]
    return tuple(sorted(found, key=lambda rebalance: rebalance.began_ms))


def triggers(events: Iterable[Event], outlived: Collection[int]) -> list[Trigger]:
    """The triggers of rebalances.

    outlived: times at which the server was killed without causing a rebalance. Only processes that have asked
    to join count as members.
    """
    found: list[Trigger] = []
    members: set[str] = set()
    for event in events:
        match event:
            case Joining():
                members.add(event.name)
                found.append(Trigger(at_ms=event.at_ms, name=event.name, verb=JOINS))
            case Killed() if event.name in members or (event.name == SERVER and event.at_ms not in outlived):
                found.append(Trigger(at_ms=event.at_ms, name=event.name, verb="is killed"))
            case Stopping() if event.name in members:
                found.append(Trigger(at_ms=event.at_ms, name=event.name, verb="leaves"))
    return found


def _generations(events: Sequence[Event], outlived: Collection[int]) -> Iterable[Rebalance]:
    pending = triggers(events, outlived)
    generations = _by_generation(events)
    before: int | None = None
    previous: dict[str, Assigned] = {}
    for (_, generation), assigned in sorted(generations.items()):
        since_ms = max((event.at_ms for event in previous.values()), default=0)
        done_ms = max(event.at_ms for event in assigned.values())
        answered = [t for t in pending if t.at_ms <= done_ms and t.answered_by(assigned)]
        pending = [t for t in pending if t not in answered]
        returned = _returned(events, since_ms, done_ms)
        began_ms = min((trigger.at_ms for trigger in answered), default=min(returned, default=done_ms))
        yield Rebalance(
            cause=_cause(answered, previous),
            before=before,
            after=generation,
            members=tuple(sorted((name, event.partitions) for name, event in assigned.items())),
            began_ms=began_ms,
            noticed_ms=min((at_ms for at_ms in returned if at_ms >= began_ms), default=None)
            if answered
            else None,
            done_ms=done_ms,
        )
        before, previous = generation, assigned


def _by_generation(events: Iterable[Event]) -> dict[tuple[int, int], dict[str, Assigned]]:
    """Each member's assignment, by (starts of the server, generation).

    A server that lost its data would count generations anew.
    """
    starts = 0
    found: dict[tuple[int, int], dict[str, Assigned]] = {}
    for event in events:
        match event:
            case Ready():
                starts += 1
            case Assigned():
                found.setdefault((starts, event.generation), {})[event.name] = event
    return found


def _returned(events: Iterable[Event], since_ms: int, until_ms: int) -> list[int]:
    """The times at which members gave partitions back."""
    return [
        e.at_ms for e in events if isinstance(e, Revoked) and e.partitions and since_ms <= e.at_ms <= until_ms
    ]


def _cause(answered: Sequence[Trigger], before: dict[str, Assigned]) -> str:
    if answered:
        names = " and ".join(sorted(trigger.name for trigger in answered))
        verbs = {trigger.verb for trigger in answered}
        if len(answered) > 1 and verbs == {JOINS}:
            return f"{names} join"
        return ", ".join(f"{trigger.name} {trigger.verb}" for trigger in answered)
    if not any(event.partitions for event in before.values()):
        return "the leader finds the topic's partitions"
    return "members join again"


def _restarts(events: Sequence[Event]) -> Iterable[Rebalance]:
    """Each restart of the server after which all members kept their generation and committed again."""
    kills = [event for event in events if isinstance(event, Killed) and event.name == SERVER]
    for kill in kills:
        held = _held(event for event in events if event.at_ms <= kill.at_ms)
        ready_ms = min(
            (e.at_ms for e in events if isinstance(e, Ready) and e.at_ms > kill.at_ms), default=None
        )
        if ready_ms is None or not held:
            continue
        commits = [_commit_before_rejoin(events, name, ready_ms) for name in held]
        committed = [at_ms for at_ms in commits if at_ms is not None]
        if len(committed) == len(commits):
            generation = max(event.generation for event in held.values())
            yield Rebalance(
                cause=f"server killed, {(ready_ms - kill.at_ms) / 1000:.1f} s down",
                before=generation,
                after=generation,
                members=tuple(sorted((name, event.partitions) for name, event in held.items())),
                began_ms=kill.at_ms,
                noticed_ms=None,
                done_ms=max(committed),
                kept=True,
            )


def _held(events: Iterable[Event]) -> dict[str, Assigned]:
    """The assignment of each member that still runs after these events."""
    held: dict[str, Assigned] = {}
    for event in events:
        match event:
            case Assigned():
                held[event.name] = event
            case Killed() | Stopping():
                held.pop(event.name, None)
    return held


def _commit_before_rejoin(events: Iterable[Event], name: str, since_ms: int) -> int | None:
    """When a member first committed from `since_ms` on; None if it never did, or had to rejoin first."""
    for event in events:
        if event.name == name and event.at_ms >= since_ms and isinstance(event, Committed | Revoked):
            return event.at_ms if isinstance(event, Committed) else None
    return None
