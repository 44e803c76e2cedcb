"""The control socket: lines of JSON to a cluster of three brokers, and to one whose requests may fail."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from random import Random

from twisted.internet.testing import StringTransport
from twisted.protocols.basic import LineOnlyReceiver

from kshim.control.commands import Commands
from kshim.control.connection import Connection
from tests.control.steered import World
from tests.faults import world as faults
from tests.fuzz.target import Target


class _Errors(logging.Handler):
    """Keeps what is logged as an error: a client's mistake belongs into its reply, not into the log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


FAULTS = (
    {"api": "Heartbeat", "error": "NOT_COORDINATOR", "group": "g", "times": 2},
    {"delay_ms": 5, "client_id": "c", "probability": 0.5, "seed": 7, "for_ms": 1000},
    {"close": "after", "topic": "t", "nth": 3, "once": True},
)


def _commands() -> Commands:
    return {**World().steering.commands(), **faults.World().steering.commands()}


def _read(data: bytes) -> tuple[list[bytes], bool]:
    """The replies, and whether the connection was closed."""
    request = Connection(_commands())
    transport = StringTransport()
    errors, logger = _Errors(), logging.getLogger("kshim.control.connection")
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(errors)
    try:
        request.makeConnection(transport)
        request.dataReceived(data)
    finally:
        logger.removeHandler(errors)
        logger.propagate = propagates
    for record in errors.records:
        raise record.exc_info[1] if record.exc_info else AssertionError(record)
    return transport.value().splitlines(keepends=True), transport.disconnecting


def _check(data: bytes, found: tuple[list[bytes], bool]) -> None:
    replies, is_closed = found
    lines = data.split(b"\n")
    too_long = [len(line) > LineOnlyReceiver.MAX_LENGTH for line in lines]
    assert is_closed == any(too_long)
    assert len(replies) == (too_long.index(True) if is_closed else len(lines) - 1)
    for reply in replies:
        assert reply.endswith(b"\n")
        ((kind, answer),) = json.loads(reply).items()
        assert kind == "done" or (kind == "refused" and isinstance(answer, str) and answer)


def _seeds(chance: Random) -> Iterable[bytes]:
    names = ("t", "alone", "__consumer_offsets", "g")
    arguments: dict[type, tuple[object, ...]] = {str: names, int: (0, 1, 2, 3, -1, 2**31), dict: FAULTS}
    for command, (_, types) in _commands().items():
        for _ in range(4):
            given = [chance.choice(arguments[kind]) for kind in types]
            yield json.dumps([command, given]).encode() + b"\n"
    yield b'["add-fault", [{"drop": true}]]\n["list-faults", []]\n["remove-fault", [1]]\n'
    yield b'["stop-broker", [3]]\n["start-broker", [3]]\n["describe", []]\n'


CONTROL = Target(
    "control",
    _read,
    (),
    _check,
    _seeds,
    words=(b"\n", b"[", b"]", b"{}", b'"', b"null", b"true", b"1e999", b"NaN", b'"\\ud800"', b"9" * 20, b"-"),
)
