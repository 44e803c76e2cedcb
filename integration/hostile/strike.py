"""Sends the volleys of an attack, and counts the answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from integration.hostile.attack import Volley
from kshim.testing.wire import Wire
from schemas.message import MalformedMessage
from schemas.registry import decode_response

LIMIT_S = 15
"""Longest time of one volley."""
SMALL_BYTES = 64 * 1024
"""Largest answer that is decoded, to find errors in it."""
RECEIVE_BYTES = 1 << 20
UNREAD_BUFFER_BYTES = 4096


@dataclass
class Tally:
    """Counts of what happened to the requests of a volley."""

    requests: int = 0
    sent_bytes: int = 0
    answered: int = 0
    refused: int = 0
    """Requests that were answered with an error code."""
    closed: int = 0
    """Connections that the server closed, or did not accept."""
    unanswered: int = 0
    """Requests whose answer did not come while the volley lasted."""
    began_s: float = 0
    ended_s: float = 0


class _Attacker(Wire):
    def __init__(self, host: str, port: int, volley: Volley) -> None:
        buffer_bytes = None if volley.reads else UNREAD_BUFFER_BYTES
        super().__init__(host, port, timeout_s=LIMIT_S, receive_buffer_bytes=buffer_bytes)
        self.speaks_http = volley.speaks_http
        self.waiting: list[tuple[int, int]] = []
        """API key and version of the requests that wait for an answer."""

    def read_answer(self) -> bytes:
        """Read the next answer, and return it; empty if it is large or HTTP."""
        if self.speaks_http:
            while self.recv(RECEIVE_BYTES):
                pass
            return b""
        size = struct.unpack(">i", self.read(4))[0]
        if size <= SMALL_BYTES:
            return self.read(size)
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        while size:
            received = self.recv_into(buffer, min(size, RECEIVE_BYTES))
            if not received:
                raise ConnectionError("closed within an answer")
            size -= received
        return b""


def strike(host: str, port: int, volley: Volley) -> Tally:
    """Carry out one volley."""
    tally = Tally(began_s=time.monotonic())
    deadline = tally.began_s + LIMIT_S
    attackers: list[_Attacker] = []
    try:
        for _ in range(volley.connections):
            try:
                attackers.append(_Attacker(host, port, volley))
            except OSError:
                tally.closed += 1
        for frames in _chunks(volley, tally.began_s):
            if time.monotonic() > deadline or not attackers:
                break
            _send_all(attackers, frames, volley, tally, deadline)
            if volley.reads:
                _read_all(attackers, tally, deadline)
        time.sleep(volley.hold_s)
        tally.closed += sum(map(_is_closed, attackers))
        if volley.reads:
            tally.unanswered += sum(len(attacker.waiting) for attacker in attackers)
    finally:
        for attacker in attackers:
            attacker.close()
    tally.ended_s = time.monotonic()
    return tally


def _chunks(volley: Volley, began_s: float) -> Iterator[Sequence[bytes]]:
    frames: Iterable[bytes] = cycle(volley.frames) if volley.repeat_s else volley.frames
    frames = iter(frames)
    while chunk := list(islice(frames, volley.in_flight)):
        yield chunk
        if volley.repeat_s and time.monotonic() > began_s + volley.repeat_s:
            return


def _send_all(
    attackers: list[_Attacker], frames: Sequence[bytes], volley: Volley, tally: Tally, deadline: float
) -> None:
    if volley.byte_interval_s:
        _send_slowly(attackers, frames, volley.byte_interval_s, tally, deadline)
        return
    for attacker in list(attackers):
        attacker.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            for frame in frames:
                _note(attacker, frame, tally)
                attacker.sendall(frame)
        except TimeoutError:
            return
        except OSError:
            _drop(attackers, attacker, tally)


def _send_slowly(
    attackers: list[_Attacker], frames: Sequence[bytes], interval_s: float, tally: Tally, deadline: float
) -> None:
    for frame in frames:
        for attacker in attackers:
            _note(attacker, frame, tally)
    for byte in b"".join(frames):
        for attacker in list(attackers):
            try:
                attacker.send(bytes([byte]))
            except OSError:
                _drop(attackers, attacker, tally)
        if time.monotonic() > deadline:
            return
        time.sleep(interval_s)


def _note(attacker: _Attacker, frame: bytes, tally: Tally) -> None:
    tally.requests += 1
    tally.sent_bytes += len(frame)
    if len(frame) >= 8:
        attacker.waiting.append(struct.unpack_from(">hh", frame, 4))


def _read_all(attackers: list[_Attacker], tally: Tally, deadline: float) -> None:
    for attacker in list(attackers):
        try:
            while attacker.waiting:
                attacker.settimeout(max(0.1, deadline - time.monotonic()))
                answer = attacker.read_answer()
                tally.answered += 1
                tally.refused += _is_refusal(*attacker.waiting.pop(0), answer)
        except TimeoutError:
            return
        except OSError:
            _drop(attackers, attacker, tally)


def _drop(attackers: list[_Attacker], attacker: _Attacker, tally: Tally) -> None:
    tally.closed += 1
    attackers.remove(attacker)
    attacker.close()


def _is_closed(attacker: _Attacker) -> bool:
    attacker.setblocking(False)
    try:
        return not attacker.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _is_refusal(api_key: int, version: int, answer: bytes) -> bool:
    """True if any part of the answer has an error code."""
    with contextlib.suppress(MalformedMessage, KeyError, ValueError):
        return bool(answer) and _has_error(decode_response(api_key, version, answer)[1])
    return False


def _has_error(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_error, value))
    names = getattr(type(value), "__annotations__", ())
    parts = {name: getattr(value, name) for name in names}
    return any(
        found != 0 if name.endswith("error_code") else _has_error(found) for name, found in parts.items()
    )
