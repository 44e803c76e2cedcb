"""Plays a deployment with real processes, and measures what becomes of the group."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from integration.plan.scenarios import CALM_MS
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from kshim.plan.deployment import Deployment, Kind
from kshim.plan.figures import happened
from kshim.plan.ledger import Ledger
from kshim.plan.run import Recorded, Run
from kshim.plan.setting import Setting

READY_S = 180
READING_MS = 500
"""How long the events take to be read and counted, at most, in ms."""


class Event(NamedTuple):
    """A line that a member printed, or an act of the deployment on it."""

    at_ms: int
    member: str
    what: str
    partitions: tuple[int, ...] = ()


class Process:
    """One member's process. It is ready to join when it is made."""

    def __init__(self, name: str, options: Mapping[str, Any], events: list[Event]) -> None:
        self.name, self._events = name, events
        self._said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "integration.plan.member", json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self) -> None:
        """Wait until it has imported its client."""
        wait_until(lambda: self._said, READY_S, f"{self.name} is ready")

    def say(self, word: str) -> None:
        """Make it join or close."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._events.append(Event(_now_ms(), self.name, "ends"))

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self._said.append(said["what"])
            self._events.append(Event(said["at_ms"], self.name, said["what"], tuple(said["partitions"])))


def measured(
    server: Server,
    group: str,
    setting: Setting,
    deployment: Deployment,
    duration_ms: int,
    partitions: int,
    *,
    tells_why: bool = True,
) -> Run:
    """Play a deployment with real clients. Members are processes that are ready before they are to start.

    tells_why: False if the server does not say how many rebalances there were.
    """
    admin = Admin(server.bootstrap)
    admin.create_topic(group, partitions)
    admin.close()
    slots = [*range(deployment.members), *(act.slot for act in deployment.acts if act.kind is Kind.START)]
    events: list[Event] = []
    processes = [
        Process(_name(setting, slot, life), _options(server, group, setting, slot), events)
        for life, slot in enumerate(slots)
    ]
    try:
        for process in processes:
            process.wait_ready()
        running = dict(enumerate(processes[: deployment.members]))
        for process in running.values():
            process.say("join")
        began_ms = _settled(events, partitions) + CALM_MS
        _play(deployment, began_ms, running, processes[deployment.members :])
        _sleep_until(began_ms + duration_ms)
        recorded = Recorded()
        if tells_why:
            recorded = _recorded(server, group, began_ms, began_ms + duration_ms)
        seen = sorted(events)
    finally:
        for process in processes:
            process.end()
    ledger = entered(seen, began_ms, partitions)
    return Run(happened(ledger, recorded.rebalances, 0, duration_ms), recorded)


def _settled(events: list[Event], partitions: int) -> int:
    """Wait until all partitions have an owner and nothing has changed for nearly CALM_MS; return the time of
    the last change.
    """

    def last_change() -> int | None:
        ledger = entered(sorted(events), 0, partitions)
        is_calm = _now_ms() > ledger.changed_ms + CALM_MS - READING_MS
        return ledger.changed_ms if ledger.is_complete and is_calm else None

    return wait_until(last_change, READY_S, "the group settles") or 0


def _play(
    deployment: Deployment, began_ms: int, running: dict[int, Process], ahead: Sequence[Process]
) -> None:
    starting = iter(ahead)
    for act in deployment.acts:
        _sleep_until(began_ms + act.at_ms)
        if act.kind is Kind.START:
            running[act.slot] = next(starting)
            running[act.slot].say("join")
        elif act.kind is Kind.CLOSE:
            running.pop(act.slot).say("close")
        else:
            running.pop(act.slot).kill()


def _name(setting: Setting, slot: int, life: int) -> str:
    return f"member-{slot}" if setting.is_static else f"member-{slot} in its life {life}"


def _options(server: Server, group: str, setting: Setting, slot: int) -> Mapping[str, Any]:
    return {
        "client": setting.client,
        "protocol": setting.protocol,
        "bootstrap": server.bootstrap,
        "group": group,
        "topic": group,
        "instance": f"member-{slot}" if setting.is_static else None,
        "session_ms": setting.session_ms,
        "heartbeat_ms": setting.interval_ms,
    }


def entered(events: Iterable[Event], began_ms: int, partitions: int) -> Ledger:
    """A ledger of what members said; what a closing one says after its end does not count."""
    ledger = Ledger(partitions)
    live: set[str] = set()
    for event in events:
        at_ms = event.at_ms - began_ms
        if event.what == "starts":
            live.add(event.member)
            ledger.starts(event.member, at_ms)
        elif event.what == "ends":
            live.discard(event.member)
            ledger.ends(event.member, at_ms)
        elif event.member in live and event.what == "gains":
            ledger.gains(event.member, event.partitions, at_ms)
        elif event.member in live and event.what == "loses":
            ledger.loses(event.member, event.partitions, at_ms)
    return ledger


def _recorded(server: Server, group: str, begin_ms: int, end_ms: int) -> Recorded:
    known = server.why(group)["rebalances"]
    rebalances = [each for each in known if begin_ms < each["ended_ms"] <= end_ms]
    moved = [move for each in rebalances for move in each["moved"]]
    return Recorded(len(rebalances), len(moved), sum(move["unowned_ms"] or 0 for move in moved))


def _sleep_until(at_ms: int) -> None:
    time.sleep(max(at_ms - _now_ms(), 0) / 1000)


def _now_ms() -> int:
    return round(time.time() * 1000)
