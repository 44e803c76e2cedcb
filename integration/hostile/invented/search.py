"""Carries out invented histories on real servers, and judges each by the bounds of an attack."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from integration.hostile.attack import MB, SENT_FACTOR, Bounds
from integration.hostile.invented.history import Step, steps
from integration.hostile.invented.vocabulary import Vocabulary
from integration.hostile.memory import MemoryWatch
from integration.hostile.run import ANSWER_TIMEOUT_S, BESIDE_LOAD, Patience, answers_at_all, faults_of_log
from integration.hostile.strike import RECEIVE_BYTES, SMALL_BYTES, UNREAD_BUFFER_BYTES
from integration.hostile.victim import Account, Victim
from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.message import MalformedMessage
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.registry import decode_response

SERVER_HISTORIES = 250
"""Histories on one server. Then a new server begins, without the data that they have left."""
STEP_TIMEOUT_S = 3
"""How long a step waits for its answers. Answers to parked requests come later, or never."""
QUIET_S = 0.04
"""A step ends when no answer has come for this long, as JoinGroup and Fetch may be parked."""
REST_S = 5.0
BOUNDS = Bounds()


@dataclass
class Played:
    """A history that was carried out."""

    seed: int
    began_s: float
    steps: list[Step] = field(default_factory=list)
    ended_s: float = 0
    sent_bytes: int = 0
    peak_bytes: int = 0
    kept_bytes: int = 0
    worst_ms: float = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {'; '.join(self.faults)}", *(f"    {step}" for step in self.steps)]
        return "\n".join(lines)


def play(seeds: range, data_dir: Path, patience: Patience = BESIDE_LOAD) -> Iterator[Played]:
    """Carry out the histories of some seeds on one server.

    The first result is yielded only after all have been played, as the victim reports at the end. data_dir:
    the server's; Path(":memory:") keeps nothing.
    """
    server = Server(data_dir).start()
    try:
        _arm(server)
        victim = Victim(server.host, server.port, server.process.pid)
        vocabulary, played = Vocabulary(), []
        for seed in seeds:
            played.append(_play(seed, server, vocabulary))
            if not server.running:
                break
        account = victim.stop()
    finally:
        if server.running:
            server.kill()
    _judge_waits(played, account, patience)
    played[-1].faults += account.failures[:1]
    if strange := faults_of_log(server.log):
        played[-1].faults += strange
    yield from played


def _arm(server: Server) -> None:
    """Create topics of several kinds."""
    topics = tuple(
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        for name, partitions in (("narrow", 1), ("wide", 1000), ("compacted", 3))
    )
    with Wire(server.host, server.port) as wire:
        wire.ask(4, CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=False))


def _play(seed: int, server: Server, vocabulary: Vocabulary) -> Played:
    memory = MemoryWatch(server.process.pid)
    played = Played(seed, time.monotonic())
    with contextlib.ExitStack() as connections:
        for step in steps(seed, vocabulary):
            played.steps.append(step)
            _carry_out(step, server, connections, vocabulary, played)
            if not server.running:
                played.faults.append("the server ended")
                break
        if server.running and not answers_at_all(server):
            played.faults.append(f"no answer within {ANSWER_TIMEOUT_S} s")
            server.kill()
    memory.rest(BOUNDS.kept_bytes, REST_S)
    played.ended_s = time.monotonic()
    played.peak_bytes, played.kept_bytes = memory.peak_of_all_bytes(), memory.above_idle_bytes()
    memory.stop()
    _judge_memory(played, server)
    return played


def _carry_out(
    step: Step, server: Server, connections: contextlib.ExitStack, vocabulary: Vocabulary, played: Played
) -> None:
    """Send the frames on all connections, and read the answers. Connections that do not read stay open."""
    wires: list[Wire] = []
    buffer_bytes = None if step.reads else UNREAD_BUFFER_BYTES
    with contextlib.suppress(OSError):
        for _ in range(step.connections):
            wire = Wire(server.host, server.port, timeout_s=STEP_TIMEOUT_S, receive_buffer_bytes=buffer_bytes)
            wires.append(connections.enter_context(wire))
    for wire in wires:
        with contextlib.suppress(OSError):
            wire.sendall(step.frame * step.repeats)
            played.sent_bytes += len(step.frame) * step.repeats
    if step.reads:
        _read(wires, step, vocabulary)
        for wire in wires:
            wire.close()


def _read(wires: list[Wire], step: Step, vocabulary: Vocabulary) -> None:
    """Read until no more answers come, and learn values from the first answer."""
    deadline = time.monotonic() + STEP_TIMEOUT_S
    first = bytearray()
    expected = len(wires) * step.repeats
    counts = {wire: _Count() for wire in wires}
    while counts and time.monotonic() < deadline and sum(it.answers for it in counts.values()) < expected:
        readable, _, _ = select.select(list(counts), [], [], QUIET_S)
        if not readable:
            break
        for wire in readable:
            try:
                data = wire.recv(RECEIVE_BYTES)
            except OSError:
                data = b""
            if not data:
                expected -= step.repeats
                del counts[wire]
                continue
            if wire is wires[0] and len(first) < SMALL_BYTES:
                first += data
            counts[wire].take(data)
    size = int.from_bytes(first[:4]) if first else 0
    if 0 < size <= len(first) - 4:
        with contextlib.suppress(MalformedMessage, ValueError):
            vocabulary.learn(decode_response(step.api_key, step.version, bytes(first[4 : 4 + size]))[1])


@dataclass
class _Count:
    """Counts the answers on a connection without keeping them."""

    answers: int = 0
    left: int = 0
    """Missing bytes of the answer that is being received."""
    head: bytes = b""

    def take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self.left:
                taken = min(self.left, len(data) - at)
                self.left -= taken
                at += taken
                self.answers += not self.left
                continue
            need = 4 - len(self.head)
            self.head += data[at : at + need]
            at += need
            if len(self.head) == 4:
                self.left, self.head = int.from_bytes(self.head), b""


def _judge_memory(played: Played, server: Server) -> None:
    allowed_bytes = BOUNDS.peak_bytes + SENT_FACTOR * played.sent_bytes
    for what, found, allowed in (
        ("took", played.peak_bytes, allowed_bytes),
        ("kept", played.kept_bytes, BOUNDS.kept_bytes),
    ):
        if found > allowed and server.running:
            played.faults.append(f"{what} {found // MB:,} MB, {allowed // MB:,} are allowed")


def _judge_waits(histories: list[Played], account: Account, patience: Patience) -> None:
    """Judge each wait of the victim as part of the history in which it begins."""
    allowed_ms = BOUNDS.wait_ms * patience.factor
    for played in histories:
        waits = [wait for wait in account.waits if played.began_s <= wait.began_s < played.ended_s]
        worst = max(waits, key=patience.length_ms, default=None)
        if worst is None:
            continue
        played.worst_ms = patience.length_ms(worst)
        if played.worst_ms > allowed_ms:
            played.faults.append(f"the victim waited {played.worst_ms:,.0f} ms for {worst.request}")
