"""Runs one attack on one server, from the server's start to its return after `kill -9`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.hostile.attack import MB, SENT_FACTOR, Attack, Volley
from integration.hostile.memory import MOST_BYTES, MemoryWatch
from integration.hostile.strike import Tally, strike
from integration.hostile.victim import Account, Victim, Wait, fetch_request
from integration.support.server import Server, set_options
from kshim.certificates.directory import make
from kshim.testing.wire import Wire
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.records.batch import batches, records

BASELINE_S = 1.0
ARM_TIMEOUT_S = 120
ANSWER_TIMEOUT_S = 15
AFTERMATH_S = 1.0
"""An attack may have late effects."""
REST_S = 20.0
"""Freed memory is given back to the system within 16 s: `kshim.cli.freed_memory` trims 8 s after it has last
trimmed, then after 16 s.
"""
RETURN_S = 10.0
FORGED = "FORGED"
"""The beginning of each line that an attacker tries to write into the server's log."""
_LOG_LINE = re.compile(
    rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{{3}}Z [A-Z]+ +(?!{FORGED})[^\x00-\x1f\x7f-\x9f]*"
)


@dataclass
class Part:
    """The results of one volley."""

    label: str
    tally: Tally
    worst_ms: float
    peak_bytes: int


@dataclass
class Report:
    """The results of one attack."""

    attack: Attack
    parts: list[Part] = field(default_factory=list)
    victim_requests: int = 0
    baseline_ms: float = 0
    worst_ms: float = 0
    worst_request: str = ""
    peak_bytes: int = 0
    kept_bytes: int = 0
    return_s: float = 0
    faults: list[str] = field(default_factory=list)
    """The bounds that were broken."""


@dataclass(frozen=True)
class Patience:
    """The rule by which the victim's wait is judged."""

    factor: float = 1
    """The factor for the bound of its wait."""
    beside_load: bool = False
    """True if the machine has other work, too. Time in which that work had the processors does not count."""

    def length_ms(self, wait: Wait) -> float:
        return wait.own_ms if self.beside_load else wait.ms


QUIET = Patience()
BESIDE_LOAD = Patience(factor=2, beside_load=True)


def run(attack: Attack, directory: Path, patience: Patience = QUIET) -> Report:
    """Run an attack, and return its results, with the bounds that were broken."""
    options = _with_tls(directory) if attack.tls else attack.options
    server = Server(directory / "data", options, listeners=attack.listeners).start()
    report = Report(attack)
    try:
        account = _attack(server, attack, report, patience)
        report.faults += _faults_of_return(server, account, report)
    except (AssertionError, OSError) as error:
        report.faults.append(f"could not be carried out: {type(error).__name__}: {str(error)[:200]}")
    finally:
        if server.running:
            server.kill()
    report.faults += faults_of_log(server.log)
    return report


def _attack(server: Server, attack: Attack, report: Report, patience: Patience) -> Account:
    with Wire(server.host, server.port, timeout_s=ARM_TIMEOUT_S) as wire:
        volleys = attack.arm(wire)
    victim = Victim(server.host, server.port, server.process.pid, asks_wide=attack.asks_wide)
    time.sleep(BASELINE_S)
    memory = MemoryWatch(server.process.pid)
    began_s = time.monotonic()
    tallies = list(_strike_all(server, volleys, report))
    time.sleep(AFTERMATH_S)
    memory.rest(attack.bounds.kept_bytes, REST_S)
    ended_s = time.monotonic()
    report.peak_bytes = memory.peak_bytes(began_s, ended_s)
    if server.running:
        report.kept_bytes = memory.above_idle_bytes()
        report.peak_bytes = memory.peak_of_all_bytes()
    elif memory.killed:
        report.faults.append(f"took more than {MOST_BYTES // MB:,} MB, and was killed")
    elif not report.faults:
        report.faults.append("the server ended")
    memory.stop()
    account = victim.stop()
    _judge(report, account, tallies, memory, (began_s, ended_s), patience)
    return account


def _with_tls(directory: Path) -> list[str]:
    """The options of a server with a second listener, which has TLS."""
    properties = make(directory / "certificates").server
    return ["--listen", "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", *set_options(properties)]


def _struck_port(server: Server) -> int:
    """The port of the last listener, which is the one with TLS or SASL, if there is one."""
    return int(server.stdout[-1].rpartition(":")[2])


def _strike_all(server: Server, volleys: Sequence[Volley], report: Report) -> Iterator[tuple[Volley, Tally]]:
    """Strike with each volley, and yield its tally. Before the next one, wait until the server answers again;
    kill it if it does not.
    """
    for volley in volleys:
        if not server.running:
            return
        tally = strike(server.host, _struck_port(server), volley)
        answers = answers_at_all(server)
        tally.ended_s = time.monotonic()
        yield volley, tally
        if not answers and server.running:
            report.faults.append(f"no answer within {ANSWER_TIMEOUT_S} s after: {volley.label}")
            server.kill()


def answers_at_all(server: Server) -> bool:
    try:
        with Wire(server.host, server.port, timeout_s=ANSWER_TIMEOUT_S) as wire:
            wire.ask(0, ApiVersionsRequest())
    except OSError:
        return False
    return True


def _judge(
    report: Report,
    account: Account,
    tallies: list[tuple[Volley, Tally]],
    memory: MemoryWatch,
    times_s: tuple[float, float],
    patience: Patience,
) -> None:
    began_s, ended_s = times_s
    length_ms = patience.length_ms
    report.baseline_ms = account.baseline_ms(began_s, length_ms)
    worst = account.worst(began_s, ended_s, length_ms)
    report.worst_ms, report.worst_request = length_ms(worst), worst.request
    report.victim_requests = account.count(began_s, ended_s)
    for volley, tally in tallies:
        times = tally.began_s, tally.ended_s
        report.parts.append(
            Part(volley.label, tally, account.worst_within_ms(*times, length_ms), memory.peak_bytes(*times))
        )
    bounds = report.attack.bounds
    sent_bytes = sum(tally.sent_bytes for _, tally in tallies)
    allowed_ms = bounds.wait_ms * patience.factor + report.baseline_ms
    if report.worst_ms > allowed_ms:
        report.faults.append(
            f"the victim waited {report.worst_ms:,.0f} ms for {worst.request}, {allowed_ms:,.0f} are allowed"
        )
    for what, found, allowed in (
        ("took", report.peak_bytes, bounds.peak_bytes + SENT_FACTOR * sent_bytes),
        ("kept", report.kept_bytes, bounds.kept_bytes),
    ):
        if found > allowed:
            report.faults.append(f"{what} {found // MB:,} MB, {allowed // MB:,} are allowed")
    report.faults += [f"the victim's {failure}" for failure in account.failures[:1]]


def _faults_of_return(server: Server, account: Account, report: Report) -> list[str]:
    """Kill the server, start it again, and check that it has the victim's records. Return what is wrong."""
    if server.running:
        server.kill()
    began_s = time.monotonic()
    try:
        server.restart()
        report.return_s = time.monotonic() - began_s
        stored = _stored(server, max(account.acknowledged, default=-1) + 1)
    except (AssertionError, OSError) as error:
        return [f"did not come back after kill -9: {str(error).splitlines()[0]}"]
    faults = []
    if report.return_s > RETURN_S:
        faults.append(f"was back {report.return_s:.1f} s after kill -9, {RETURN_S:.0f} are allowed")
    lost = sum(stored.get(offset) != value for offset, value in account.acknowledged.items())
    if lost:
        faults.append(f"lost {lost} of {len(account.acknowledged)} acknowledged records")
    return faults


def _stored(server: Server, end: int) -> dict[int, bytes | None]:
    """Offset -> value of the victim's records before `end`."""
    found: dict[int, bytes | None] = {}
    offset = 0
    with Wire(server.host, server.port, timeout_s=ANSWER_TIMEOUT_S) as wire:
        while offset < end:
            (partition,) = wire.ask(11, fetch_request(offset)).responses[0].partitions
            read = [record for batch in batches(partition.records or b"") for record in records(batch)]
            if not read:
                return found
            found |= {record.offset: record.value for record in read}
            offset = read[-1].offset + 1
    return found


def faults_of_log(log: list[str]) -> list[str]:
    strange = [line for line in log if not _LOG_LINE.fullmatch(line)]
    if not strange:
        return []
    return [f"{len(strange)} strange lines in the log; the first: {strange[0][:200]!r}"]
