"""The stream of a connection, cut anyhow: one byte gives the number of cuts, two each their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

from kshim.network.frames import FrameError, Frames, framed
from tests.fuzz.target import Target

MAX_FRAME_BYTES = 4096


def cut(data: bytes) -> list[bytes]:
    """The chunks in which an input arrives."""
    count = min(data[0] if data else 0, len(data) // 2)
    wire = data[1 + 2 * count :]
    places = (int.from_bytes(data[1 + 2 * i : 3 + 2 * i]) for i in range(count))
    cuts = sorted(place % (len(wire) + 1) for place in places)
    return [wire[start:end] for start, end in pairwise([0, *cuts, len(wire)])]


def _read(data: bytes) -> list[bytes | str]:
    return list(_frames(cut(data)))


def _frames(chunks: Iterable[bytes]) -> Iterator[bytes | str]:
    """The frames, and the reason for which no more can be read."""
    frames = Frames(MAX_FRAME_BYTES)
    try:
        for chunk in chunks:
            frames.receive(chunk)
            while (frame := frames.next_frame()) is not None:
                yield bytes(frame)
    except FrameError as error:
        yield str(error)


def _expected(wire: bytes) -> Iterator[bytes | None]:
    """The frames by the protocol's rule; None for a size that is refused."""
    at = 0
    while at + 4 <= len(wire):
        size = int.from_bytes(wire[at : at + 4], signed=True)
        if not 0 <= size <= MAX_FRAME_BYTES:
            yield None
            return
        if len(wire) < at + 4 + size:
            return
        yield wire[at + 4 : at + 4 + size]
        at += 4 + size


def _check(data: bytes, found: list[bytes | str]) -> None:
    wire = b"".join(cut(data))
    assert [None if isinstance(it, str) else it for it in found] == list(_expected(wire))
    assert found == list(_frames([wire]))
    if len(wire) <= MAX_FRAME_BYTES:
        assert found == list(_frames(wire[i : i + 1] for i in range(len(wire))))
    whole = b"".join(part for frame in found if isinstance(frame, bytes) for part in framed(frame))
    assert wire.startswith(whole)


def _seeds(chance: Random) -> Iterable[bytes]:
    for count in (0, 0, 1, 2, 3, 7):
        payloads = [chance.randbytes(chance.choice((0, 1, 3, 200))) for _ in range(chance.randint(1, 4))]
        wire = b"".join(part for payload in payloads for part in framed(payload))
        yield bytes([count]) + chance.randbytes(2 * count) + wire


FRAMES = Target(
    "frames",
    _read,
    (),
    _check,
    _seeds,
    words=(b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\0\0\x10\0", b"\0\0\x10\1", b"\0\0\0\0", b"\0\0\0\1"),
)
