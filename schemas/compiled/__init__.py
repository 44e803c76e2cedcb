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
from typing import Any, cast

from schemas.compiled.measuring import Measurer, Measuring, Size
from schemas.compiled.reading import Decoder, Reading
from schemas.compiled.writing import Encoder, Writing
from schemas.message import MalformedMessage, T, struct
from schemas.pieces import Pieces

__all__ = [
    "Decoder",
    "Encoder",
    "Measurer",
    "Size",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "measurer",
    "overfull",
    "piece_encoder",
]


@cache
def decoder(cls: Any, version: int) -> Decoder:
    """decode(frame, offset, left) -> (message, offset after it).

    Raises MalformedMessage, and TooManyElements if the message has more than `left` elements. frame: bytes or
    a bytearray. Fields of type `records` become memoryviews of it; all others are copies.
    """
    return Reading(cls.__name__, struct(cls, version), version).compile()


@cache
def encoder(cls: Any, version: int) -> Encoder:
    """encode(message, head=b"", left, left_bytes) -> head + the message's bytes.

    Raises ValueError, which names the field, for a value that this version cannot carry. Raises
    TooManyElements if the message has more than `left` elements, and TooManyBytes if its strings and bytes,
    without its records, take more than `left_bytes`.
    """
    return Writing(cls.__name__, struct(cls, version), version).compile()


@cache
def piece_encoder(cls: Any, version: int) -> Callable[..., Pieces]:
    """Like `encoder`, but the function returns the pieces without joining them."""
    function: Any = Writing(cls.__name__, struct(cls, version), version).compile("Pieces({})")
    return cast(Callable[..., Pieces], function)


@cache
def measurer(cls: Any, version: int) -> Measurer:
    """measure(message, left, left_bytes) -> Size, without writing the message.

    Raises the same as `encoder`, but TooManyBytes if the whole message takes more than `left_bytes`. A value
    that the version cannot carry may be measured without an error, if it has a size.
    """
    return Measuring(cls.__name__, struct(cls, version), version).compile()


def decode(cls: Callable[..., T], version: int, data: bytes | memoryview) -> T:
    """Decode the message that fills `data` exactly. Raises MalformedMessage."""
    frame = bytes(data)
    value: T
    value, end = decoder(cls, version)(frame, 0)
    if end != len(frame):
        raise overfull(cls, version, frame, end)
    return value


def overfull(cls: Any, version: int, frame: bytes, end: int) -> MalformedMessage:
    """The exception for a message that ends before its frame does."""
    reason = f"{len(frame) - end} bytes too many"
    return MalformedMessage(reason, api=cls.__name__, version=version, offset=end)


def encode(value: Any, version: int) -> bytes:
    """The bytes of a message. Raises ValueError for a value that this version cannot carry."""
    cls: object = type(value)
    return encoder(cls, version)(value)
