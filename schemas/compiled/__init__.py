"""Generates, from the construct tree of each version of a message, Python functions that read and write it.

`message.struct(cls, version)` is the readable definition. At the first use of a version its tree is walked
once and becomes the text of functions: one that reads the same bytes, one that writes them, one that measures
them. Neighbouring numbers, with the length that follows them, become one `struct.Struct`; strings are sliced
in place; loops and fields are spelled out. Each line of the text has a note of the fields that it reads or
writes. So the line number of an error gives its field, and this costs nothing until an error happens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

from schemas.compiled.measuring import Measurer, Measuring, Size
from schemas.compiled.reading import Decoder, Reading
from schemas.compiled.writing import Encoder, PieceEncoder, Writing
from schemas.message import MalformedMessage, T, struct

__all__ = [
    "Decoder",
    "Encoder",
    "Measurer",
    "Size",
    "cached",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "measurer",
    "overfull",
    "piece_encoder",
]


F = TypeVar("F", bound=Callable[..., object])


def cached(function: F) -> F:
    """`functools.cache`, but the types of the function's arguments and result are kept."""
    return cast(F, cache(function))


@cached
def decoder(cls: type[T], version: int) -> Decoder[T]:
    """decode(frame, offset, left) -> (message, offset after it).

    Raises MalformedMessage, and TooManyElements if the message has more than `left` elements. frame: bytes or
    a bytearray. Fields of type `records` become memoryviews of it; all others are copies.
    """
    return Reading(cls, struct(cls, version), version).compile()


@cached
def encoder(cls: type[object], version: int) -> Encoder:
    """encode(message, head=b"", left, left_bytes) -> head + the message's bytes.

    Raises ValueError, which names the field, for a value that this version cannot carry. Raises
    TooManyElements if the message has more than `left` elements, and TooManyBytes if its strings and bytes,
    without its records, take more than `left_bytes`.
    """
    return Writing(cls.__name__, struct(cls, version), version).compile()


@cached
def piece_encoder(cls: type[object], version: int) -> PieceEncoder:
    """Like `encoder`, but the function returns the pieces without joining them."""
    return Writing(cls.__name__, struct(cls, version), version).compile_in_pieces()


@cached
def measurer(cls: type[object], version: int) -> Measurer:
    """measure(message, left, left_bytes) -> Size, without writing the message.

    Raises the same as `encoder`, but TooManyBytes if the whole message takes more than `left_bytes`. A value
    that the version cannot carry may be measured without an error, if it has a size.
    """
    return Measuring(cls.__name__, struct(cls, version), version).compile()


def decode(cls: type[T], version: int, data: bytes | memoryview) -> T:
    """Decode the message that fills `data` exactly. Raises MalformedMessage."""
    frame = bytes(data)
    value, end = decoder(cls, version)(frame, 0)
    if end != len(frame):
        raise overfull(cls, version, frame, end)
    return value


def overfull(cls: type[object], version: int, frame: bytes, end: int) -> MalformedMessage:
    """The exception for a message that ends before its frame does."""
    reason = f"{len(frame) - end} bytes too many"
    return MalformedMessage(reason, api=cls.__name__, version=version, offset=end)


def encode(value: object, version: int) -> bytes:
    """The bytes of a message. Raises ValueError for a value that this version cannot carry."""
    return encoder(type(value), version)(value)
