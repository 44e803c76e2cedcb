"""Changes of an input: what the network, a faulty client or an attacker might do to valid bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.target import MAX_INPUT_BYTES

_BYTES = (0x00, 0x01, 0x02, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_NUMBERS = tuple(
    value.to_bytes(size, signed=True)
    for size in (2, 4, 8)
    for bits in (8 * size,)
    for value in (0, 1, -1, 2, 127, -128, -2, (1 << bits - 1) - 1, -(1 << bits - 1))
)
_VARINTS = (
    b"\x80\x01",
    b"\xff\xff\x03",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\xff" * 9 + b"\x01",
)

Change = Callable[[bytearray, Random, Sequence[bytes]], None]


def mutated(data: bytes, others: Sequence[bytes], words: Sequence[bytes], chance: Random) -> bytes:
    """`data` with one to some changes; `others` are inputs to take parts from."""
    changed = bytearray(data)
    pieces = (*_NUMBERS, *_VARINTS, *words, *words, *words)
    for _ in range(1 << chance.choice((0, 0, 0, 1, 1, 2, 3))):
        change = chance.choice(_CHANGES)
        change(changed, chance, others if change is _splice else pieces)
    if chance.random() < 0.002:
        _blow_up(changed, chance)
    return bytes(changed[:MAX_INPUT_BYTES])


def _at(data: bytearray, chance: Random) -> int:
    return chance.randrange(len(data) + 1)


def _slice(data: bytes | bytearray, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 2, 4, 8, 16, 64, len(data))))


def _flip(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((*_BYTES, chance.randrange(256)))


def _add(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    if data:
        at = chance.randrange(len(data))
        data[at] = data[at] + chance.randint(-16, 16) & 0xFF


def _write_over(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    piece, at = chance.choice(pieces), _at(data, chance)
    data[at : at + len(piece)] = piece


def _replace(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    at = _at(data, chance)
    data[at : at + chance.choice((1, 1, 2, 4))] = chance.choice(pieces)


def _insert(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    at = _at(data, chance)
    data[at:at] = chance.choice((chance.choice(pieces), chance.randbytes(chance.randint(1, 8))))


def _delete(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    start, end = _slice(data, chance)
    del data[start:end]


def _repeat(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    start, end = _slice(data, chance)
    data[start:start] = data[start:end]


def _splice(data: bytearray, chance: Random, others: Sequence[bytes]) -> None:
    other = chance.choice(others)
    start, end = _slice(other, chance)
    at, to = _slice(data, chance)
    data[at:to] = other[start:end]


def _end(data: bytearray, chance: Random, pieces: Sequence[bytes]) -> None:
    del data[_at(data, chance) :]


def _blow_up(data: bytearray, chance: Random) -> None:
    """Repeat a part until the input is as large as it may be: this finds what takes more than linear time."""
    start, end = _slice(data, chance)
    if start < end:
        data[start:start] = data[start:end] * ((MAX_INPUT_BYTES - len(data)) // (end - start))


_CHANGES: tuple[Change, ...] = (
    _flip,
    _set,
    _add,
    _write_over,
    _replace,
    _insert,
    _delete,
    _repeat,
    _splice,
    _end,
)
