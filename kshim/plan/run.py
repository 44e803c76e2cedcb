"""Plays a deployment on the virtual clock, and says what becomes of the group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from kshim.coordination.groups.rebalance_record import Rebalance
from kshim.plan.broker import Broker
from kshim.plan.classic import ClassicMember
from kshim.plan.clock import VirtualClock
from kshim.plan.consumer import ConsumerMember
from kshim.plan.deployment import STARTS_WITHIN_MS, Act, Deployment, Kind
from kshim.plan.figures import Figures, Happened, figures, happened
from kshim.plan.ledger import Ledger
from kshim.plan.member import Member, World
from kshim.plan.setting import Protocol, Setting
from kshim.recorder.ownership import Ownership

CALM_INTERVALS = 10
"""The deployment begins when every partition has an owner, and nothing has changed for so many intervals of
heartbeats, or of what the program works on between two polls, whichever are longer.
"""

STEP_MS = 10
"""How often it is looked whether every partition has an owner, and whether a closed process has ended."""
LONGEST_START_MS = 3_600_000
"""The deployment begins after so long at the latest, in ms, also in a group that does not settle."""


class Recorded(NamedTuple):
    """What `kshim why` would say. It knows when a member was heard last, but not when it crashed, and
    nothing of a static member's restart.
    """

    rebalances: int = 0
    moves: int = 0
    unowned_ms: int = 0
    """How long what moved had no owner."""


class Run(NamedTuple):
    """One run of one seed."""

    happened: Happened
    recorded: Recorded


class Predicted(NamedTuple):
    """What becomes of one setting in all runs."""

    setting: Setting
    figures: Figures
    runs: tuple[Run, ...]


def predicted(
    setting: Setting,
    deployments: Sequence[Deployment],
    duration_ms: int,
    partitions: int,
    seed: int = 0,
    calm_ms: int | None = None,
) -> Predicted:
    """Play each deployment once the group has settled, for `duration_ms`. The first run has the seed `seed`,
    the next one the seed after it. A seed decides what differs from run to run: when members start, their
    ids, and when they send heartbeats and poll.

    calm_ms: how long nothing has changed when a deployment begins; None: about CALM_INTERVALS.
    """
    runs = tuple(
        _Play(setting, deployment, partitions, number).play(duration_ms, calm_ms)
        for number, deployment in enumerate(deployments, seed)
    )
    return Predicted(setting, figures([run.happened for run in runs], partitions, duration_ms), runs)


class _Play:
    def __init__(self, setting: Setting, deployment: Deployment, partitions: int, seed: int) -> None:
        self._setting, self._deployment, self._partitions = setting, deployment, partitions
        chance = Random(seed)
        clock = VirtualClock()
        broker = Broker(setting, clock, partitions, chance, self._rebalanced)
        self._world = World(clock, broker, Ledger(partitions), chance)
        self._ownership = Ownership()
        self._recorded = Recorded()
        self._members: dict[int, Member] = {}
        self._lives = 0

    def play(self, duration_ms: int, calm_ms: int | None) -> Run:
        clock, setting = self._world.clock, self._setting
        for slot in range(self._deployment.members):
            delay_ms = self._world.chance.randint(0, STARTS_WITHIN_MS)
            clock.after(delay_ms, partial(self._start, slot))
        clock.run_until(STARTS_WITHIN_MS + setting.delay_ms)
        self._settle(self._calm_ms() if calm_ms is None else calm_ms)
        begin_ms, before = clock.now_ms, self._recorded
        for act in self._deployment.acts:
            clock.after(act.at_ms, partial(self._act, act))
        clock.run_until(begin_ms + duration_ms)
        recorded = Recorded(*(new - old for new, old in zip(self._recorded, before, strict=True)))
        return Run(happened(self._world.ledger, recorded.rebalances, begin_ms, clock.now_ms), recorded)

    def _calm_ms(self) -> int:
        """After a rebalance heartbeats come at about the same time. No round time is to be one of them."""
        interval_ms = max(self._setting.interval_ms, self._setting.processing_ms)
        return CALM_INTERVALS * interval_ms + self._world.chance.randrange(interval_ms)

    def _settle(self, calm_ms: int) -> None:
        clock, ledger = self._world.clock, self._world.ledger
        while clock.now_ms < ledger.changed_ms + calm_ms or not ledger.is_complete:
            if clock.now_ms > LONGEST_START_MS:
                return
            clock.run_until(max(ledger.changed_ms + calm_ms, clock.now_ms + STEP_MS))

    def _act(self, act: Act) -> None:
        if act.kind is Kind.START:
            self._start(act.slot)
        elif act.kind is Kind.CLOSE:
            self._members[act.slot].close()
        else:
            self._members[act.slot].crash()

    def _start(self, slot: int) -> None:
        """Start the next process of a slot, as soon as the one before has ended."""
        before = self._members.get(slot)
        if before is not None and before.is_alive:
            self._world.clock.after(STEP_MS, partial(self._start, slot))
            return
        self._lives += 1
        setting = self._setting
        instance_id = f"member-{slot}" if setting.is_static else None
        name = instance_id or f"member-{slot} in its life {self._lives}"
        member: Member
        if setting.protocol is Protocol.CONSUMER:
            member = ConsumerMember(self._world, setting, name, instance_id)
        else:
            member = ClassicMember(self._world, setting, name, instance_id, self._partitions)
        self._members[slot] = member
        member.start()

    def _rebalanced(self, rebalance: Rebalance) -> None:
        moved = self._ownership.take(rebalance).moved
        known = self._recorded
        self._recorded = Recorded(
            known.rebalances + 1,
            known.moves + len(moved),
            known.unowned_ms + sum(move.unowned_ms or 0 for move in moved),
        )
