"""Does what the events of a schedule say, to the instances and to the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from kshim.torture.evidence import Happening
from kshim.torture.faults import FAULTS
from kshim.torture.gathering import abandoned_in, instance_of, members_in, static_id_in, transaction_in
from kshim.torture.processes import Instance, now_ms
from kshim.torture.producing import Producing
from kshim.torture.schedule import Event
from kshim.torture.stage import Refused, Stage

SESSION_MS: Final = 500
"""How long after its end, or its standstill, an instance's session ends."""
TURN_MS, OFF_MS = 100, 90
"""A slow instance stands still for the second in each of the first."""
LOOK_MS: Final = 50
END_MS: Final = 5000
"""How long an instance may take to end before it is killed."""
ABORTED_EACH: Final = 3
PARTITIONS_MORE: Final = 2
AIMS: Final = ("", "committed", "fetched")
"""What an instance has just done when it is struck: anything, a commit, a fetch."""
AIM_MS: Final = 800
"""How long to wait for that."""
STRIKE_MS: Final = (0, 5, 15, 40)
"""How long after that it is struck."""

Later = Callable[[float, Callable[[], None]], None]
"""Do something after so many ms."""


class Playing(Protocol):
    """The part of a run that acts need."""

    @property
    def stage(self) -> Stage: ...
    @property
    def producing(self) -> Producing: ...
    @property
    def group(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def instances(self) -> Mapping[str, Instance]: ...

    def new_instance(self) -> Instance:
        """An instance that joins for a while."""

    def later(self, after_ms: float, do: Callable[[], None]) -> None:
        """Do something after a while."""

    def happened(self, happening: Happening) -> None:
        """Keep what has happened for the story."""


class Acts:
    """One method for each fault that is more than a failing request."""

    def __init__(self, playing: Playing) -> None:
        self._playing = playing
        self._stage, self._later = playing.stage, playing.later
        self._gone: list[str] = []
        """Members of processes that are gone, and whose session has ended."""
        self._ended: list[tuple[str, str, float]] = []
        """Instances, their members that lost their session, and when: such a program joins anew."""

    def do(self, event: Event) -> None:
        """Play one event. What is not possible at this moment is left out, and said."""
        if event.fault in _AIMED:
            self._aim(event, now_ms() + AIM_MS, len(self._stage.notes()))
        else:
            self._do(event)

    def _do(self, event: Event) -> None:
        try:
            _DOES.get(event.fault, Acts._requests)(self, event)
        except Refused as refused:
            self._say(event, f"{event.fault} was not possible: {refused}")

    def _aim(self, event: Event, until_ms: float, seen: int) -> None:
        """Wait until the instance does what the event aims at, and strike a moment later."""
        aim = AIMS[event.choice % len(AIMS)]
        notes = self._stage.notes()
        is_there = not aim or any(
            note["what"] == aim and instance_of(note["listener"]) == f"c{event.instance}"
            for note in notes[seen:]
        )
        if is_there or now_ms() >= until_ms:
            self._later(STRIKE_MS[event.choice // len(AIMS) % len(STRIKE_MS)], lambda: self._do(event))
        else:
            self._later(1, lambda: self._aim(event, until_ms, len(notes)))

    # ---- instances

    def _kill(self, event: Event) -> None:
        instance = self._instance(event)
        if not instance.runs:
            return self._say(event, f"{instance.name} did not run, so it was not killed")
        started_ms = instance.started_ms
        instance.kill()
        self._say(event, f"{instance.name} was killed", until_ms=now_ms() + event.lasts_ms)
        self.end_session(instance, started_ms)
        self._later(event.lasts_ms, lambda: self.start(instance))
        return None

    def _stop(self, event: Event) -> None:
        instance = self._instance(event)
        if not instance.runs:
            return self._say(event, f"{instance.name} did not run, so it was not stopped")
        instance.ask_to_end()
        self._say(event, f"{instance.name} was asked to end", until_ms=now_ms() + event.lasts_ms)
        self._later(LOOK_MS, lambda: self._await_end(instance, now_ms(), event.lasts_ms, again=True))
        return None

    def _await_end(self, instance: Instance, since_ms: float, lasts_ms: float, *, again: bool) -> None:
        """Wait until an instance has ended, and start it again."""
        if instance.runs and now_ms() - since_ms > END_MS:
            started_ms = instance.started_ms
            instance.kill()
            self._note(instance, f"{instance.name} did not end within {END_MS / 1000:g} s, and was killed")
            self.end_session(instance, started_ms)
        if instance.runs:
            self._later(LOOK_MS, lambda: self._await_end(instance, since_ms, lasts_ms, again=again))
            return
        self._note(instance, f"{instance.name} ended with status {instance.status}")
        if not again:
            self.end_session(instance, instance.started_ms)  # a static member does not leave
        else:
            if not static_id_in(self._stage.notes(), self._playing.group, instance.name):
                self._gone += self._members(instance)  # it has left
            left_ms = max(0.0, lasts_ms - (now_ms() - since_ms))
            self._later(left_ms, lambda: self.start(instance))

    def start(self, instance: Instance) -> None:
        """Start an instance that has ended."""
        if not instance.runs:
            instance.start()
            self._note(instance, f"{instance.name} was started again")

    def _freeze(self, event: Event) -> None:
        instance = self._instance(event)
        if not instance.runs:
            return self._say(event, f"{instance.name} did not run, so it was not frozen")
        instance.freeze()
        self._say(event, f"{instance.name} stands still (SIGSTOP)", until_ms=now_ms() + event.lasts_ms)
        self.end_session(instance, instance.started_ms)
        self._later(event.lasts_ms, lambda: self._go_on(instance))
        return None

    def _go_on(self, instance: Instance) -> None:
        if instance.runs and instance.is_frozen:
            instance.go_on()
            self._note(instance, f"{instance.name} goes on (SIGCONT)")

    def _slow(self, event: Event) -> None:
        instance = self._instance(event)
        if not instance.runs:
            return self._say(event, f"{instance.name} did not run, so it was not slowed down")
        until_ms = now_ms() + event.lasts_ms
        self._say(event, f"{instance.name} gets a tenth of its time", until_ms=until_ms)
        self._off(instance, instance.started_ms, until_ms)
        self._later(SESSION_MS, lambda: self._put_out(instance))
        return None

    def _off(self, instance: Instance, started_ms: float, until_ms: float) -> None:
        if not instance.runs or instance.started_ms != started_ms or now_ms() >= until_ms:
            return
        if not instance.is_frozen:
            instance.freeze()
            self._later(OFF_MS, lambda: self._on(instance, started_ms))
        self._later(TURN_MS, lambda: self._off(instance, started_ms, until_ms))

    def _on(self, instance: Instance, started_ms: float) -> None:
        if instance.runs and instance.started_ms == started_ms:
            instance.go_on()

    def _put_out(self, instance: Instance) -> None:
        def put_out(member: str) -> None:
            self._stage.put_out(self._playing.group, member)
            self._note(instance, f"{instance.name} was put out of the group, as if it had not polled")

        self._try_members(instance, self._members(instance), put_out)

    def end_session(self, instance: Instance, started_ms: float) -> None:
        """End the session of an instance's members a little later."""

        def expire(member: str) -> None:
            self._stage.expire(self._playing.group, member)
            self._note(instance, f"the session of {instance.name} ended")

        # Those of this process, not those of the next one.
        members = members_in(self._stage.notes(), self._playing.group, instance.name, started_ms)
        members += [each for each in self._static_members(instance) if each not in members]
        is_gone = not instance.runs

        def end() -> None:
            self._try_members(instance, members, expire)
            if is_gone:
                self._gone += members

        self._later(SESSION_MS, end)

    def bury(self) -> None:
        """End the sessions of members that are gone, once more: another coordinator, which has read the group
        from the log, knows them again if they were gone only since the last rebalance. End those of members
        whose clients have joined anew, too.
        """
        notes, group = self._stage.notes(), self._playing.group
        replaced = [
            member
            for name, member, at_ms in self._ended
            if set(members_in(notes, group, name, at_ms)) - {member}
        ]
        for member in dict.fromkeys((*self._gone, *replaced, *abandoned_in(notes, group))):
            with suppress(Refused):
                self._stage.expire(group, member)

    def _members(self, instance: Instance) -> list[str]:
        """The members that the instance's process has been so far."""
        return members_in(self._stage.notes(), self._playing.group, instance.name, instance.started_ms)

    def _static_members(self, instance: Instance) -> list[str]:
        """The member with the instance's group.instance.id. No note names it while its first join waits."""
        static_id = static_id_in(self._stage.notes(), self._playing.group, instance.name)
        if static_id:
            with suppress(Refused):
                return [self._stage.static_member(self._playing.group, static_id)]
        return []

    def _try_members(self, instance: Instance, members: Sequence[str], do: Callable[[str], None]) -> None:
        """Do something to the last of an instance's members that is still in the group."""
        for member in reversed(members):
            try:
                do(member)
            except Refused:
                continue  # it is no member any more
            self._ended.append((instance.name, member, now_ms()))
            return

    def _expire(self, event: Event) -> None:
        instance = self._instance(event)

        def expire(member: str) -> None:
            self._stage.expire(self._playing.group, member)
            self._say(event, f"the session of {instance.name} was ended, though it lives")

        self._try_members(instance, self._members(instance), expire)

    def _join(self, event: Event) -> None:
        instance = self._playing.new_instance()
        instance.start()
        self._say(event, f"{instance.name} joins", event.lasts_ms + now_ms(), instance.name)
        self._later(event.lasts_ms, lambda: self._leave(instance))

    def _leave(self, instance: Instance) -> None:
        instance.ask_to_end()
        self._note(instance, f"{instance.name} was asked to end")
        self._later(LOOK_MS, lambda: self._await_end(instance, now_ms(), 0, again=False))

    # ---- the group

    def _rebalance(self, event: Event) -> None:
        self._stage.rebalance(self._playing.group)
        self._say(event, "the group was made to rebalance")

    def _static(self, event: Event) -> None:
        instance = self._instance(event)
        static_id = static_id_in(self._stage.notes(), self._playing.group, instance.name)
        if not static_id:
            return self._say(event, f"{instance.name} is no static member, so it was not fenced")
        self._stage.fence(self._playing.group, static_id)
        return self._say(
            event, f"{instance.name} was fenced, as if another had the group.instance.id {static_id}"
        )

    def _producer(self, event: Event) -> None:
        instance = self._instance(event)
        transaction = transaction_in(self._stage.notes(), instance.name)
        if not transaction:
            return self._say(event, f"{instance.name} has no transactional.id, so it was not fenced")
        self._stage.fence_producer(transaction)
        return self._say(event, f"the producer of {instance.name} ({transaction}) was fenced")

    # ---- the server

    def _coordinator(self, event: Event) -> None:
        self._say(event, self._stage.move_coordinator(self._playing.group, event.choice))

    def _leader(self, event: Event) -> None:
        self._say(event, self._stage.move_leader(self._playing.topic, event.choice))

    def _broker(self, event: Event) -> None:
        with self._playing.producing.undisturbed:
            node_id = self._stage.stop_broker(event.choice)
        self._say(event, f"broker {node_id} stopped", until_ms=now_ms() + event.lasts_ms)

        def start() -> None:
            self._stage.start_broker(node_id)
            self._playing.happened(Happening(now_ms(), f"broker {node_id} started again"))

        self._later(event.lasts_ms, start)

    def _partitions(self, event: Event) -> None:
        count = self._stage.add_partitions(self._playing.topic, PARTITIONS_MORE)
        self._say(event, f"{self._playing.topic} has {count} partitions now")
        # Clients hear of new partitions when they ask for a leader, or after metadata.max.age.ms: 5 minutes.
        self._later(LOOK_MS, lambda: self._leader(event._replace(fault="leader")))
        self._later(LOOK_MS, lambda: self._rebalance(event._replace(fault="rebalance")))

    def _aborted(self, event: Event) -> None:
        inputs = self._playing.producing.inputs
        partitions = 1 + max((each.place.partition for each in inputs), default=0)
        count = self._playing.producing.append_aborted(partitions, ABORTED_EACH)
        self._say(event, f"{count} records were produced in a transaction that was aborted")

    def _requests(self, event: Event) -> None:
        found = FAULTS[event.fault].requests
        does = self._stage.fail_requests(found[event.choice % len(found)], event.lasts_ms)
        self._say(event, f"{event.fault}: {does}", until_ms=now_ms() + event.lasts_ms)

    # ---- inside

    def _instance(self, event: Event) -> Instance:
        return self._playing.instances[f"c{event.instance}"]

    def _say(self, event: Event, text: str, until_ms: float | None = None, name: str = "") -> None:
        instance = name or (f"c{event.instance}" if event.instance else "")
        self._playing.happened(Happening(now_ms(), text, instance, until_ms, event.fault))

    def _note(self, instance: Instance, text: str) -> None:
        self._playing.happened(Happening(now_ms(), text, instance.name))


_DOES: Final[Mapping[str, Callable[[Acts, Event], None]]] = {
    "kill": Acts._kill,
    "stop": Acts._stop,
    "freeze": Acts._freeze,
    "slow": Acts._slow,
    "expire": Acts._expire,
    "join": Acts._join,
    "rebalance": Acts._rebalance,
    "static": Acts._static,
    "producer": Acts._producer,
    "coordinator": Acts._coordinator,
    "leader": Acts._leader,
    "broker": Acts._broker,
    "partitions": Acts._partitions,
    "aborted": Acts._aborted,
}
"""What is done, by the name of the fault. All others are failing requests."""
_AIMED: Final = frozenset(("kill", "stop", "freeze", "expire"))
"""Faults that are most cruel right after a commit, or with records in hand."""
