"""The cost of the schemas' codecs, compared with `struct` code written by hand.

The hand-written code does as little as possible: it checks no bounds and knows one version. It decodes to
tuples, and encodes the same message objects. The ratio is to stay below 2.5.
"""

from __future__ import annotations

import struct
import timeit
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

from schemas.compiled import decoder, encoder
from schemas.message import struct as reference
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

_INT32 = struct.Struct(">i")
_COMMIT = struct.Struct(">iqi")
_INT32_INT16 = struct.Struct(">ihB")


def _read_string(frame: bytes, offset: int) -> tuple[str | None, int]:
    length = frame[offset]
    offset += 1
    if length > 127:
        raise ValueError("these samples have short strings")
    if not length:
        return None, offset
    end = offset + length - 1
    return frame[offset:end].decode(), end


def _string(value: str | None) -> bytes:
    if value is None:
        return b"\0"
    data = value.encode()
    return bytes((len(data) + 1,)) + data


def _read_heartbeat(frame: bytes, offset: int) -> tuple[Any, int]:
    group_id, offset = _read_string(frame, offset)
    (generation_id,) = _INT32.unpack_from(frame, offset)
    member_id, offset = _read_string(frame, offset + 4)
    group_instance_id, offset = _read_string(frame, offset)
    return (group_id, generation_id, member_id, group_instance_id), offset + 1


def _write_heartbeat(value: HeartbeatRequest) -> bytes:
    return b"".join(
        (
            _string(value.group_id),
            _INT32.pack(value.generation_id),
            _string(value.member_id),
            _string(value.group_instance_id),
            b"\0",
        )
    )


def _read_heartbeat_response(frame: bytes, offset: int) -> tuple[Any, int]:
    return _INT32_INT16.unpack_from(frame, offset), offset + 7


def _write_heartbeat_response(value: HeartbeatResponse) -> bytes:
    return _INT32_INT16.pack(value.throttle_time_ms, value.error_code, 0)


def _read_commit(frame: bytes, offset: int) -> tuple[Any, int]:
    group_id, offset = _read_string(frame, offset)
    (generation_id,) = _INT32.unpack_from(frame, offset)
    member_id, offset = _read_string(frame, offset + 4)
    group_instance_id, offset = _read_string(frame, offset)
    topics = []
    count = frame[offset] - 1
    offset += 1
    for _ in range(count):
        name, offset = _read_string(frame, offset)
        partitions = []
        inner = frame[offset] - 1
        offset += 1
        for _ in range(inner):
            numbers = _COMMIT.unpack_from(frame, offset)
            metadata, offset = _read_string(frame, offset + 16)
            partitions.append((*numbers, metadata))
            offset += 1
        topics.append((name, partitions))
        offset += 1
    return (group_id, generation_id, member_id, group_instance_id, topics), offset + 1


def _write_commit(value: OffsetCommitRequest) -> bytes:
    out = [
        _string(value.group_id),
        _INT32.pack(value.generation_id_or_member_epoch),
        _string(value.member_id),
        _string(value.group_instance_id),
        bytes((len(value.topics) + 1,)),
    ]
    for topic in value.topics:
        out.append(_string(topic.name))
        out.append(bytes((len(topic.partitions) + 1,)))
        for it in topic.partitions:
            out.append(_COMMIT.pack(it.partition_index, it.committed_offset, it.committed_leader_epoch))
            out.append(_string(it.committed_metadata))
            out.append(b"\0")
        out.append(b"\0")
    out.append(b"\0")
    return b"".join(out)


_MEMBER = "consumer-orders-1-0b8f9a51-6f6e-4b7b-9d43-2a1f0c5d7e21"


def _commit(partitions: int) -> OffsetCommitRequest:
    rows = tuple(
        OffsetCommitRequestPartition(partition_index=it, committed_offset=10_000 + it, committed_metadata="")
        for it in range(partitions)
    )
    topics = (OffsetCommitRequestTopic(name="orders", partitions=rows),)
    return OffsetCommitRequest(
        group_id="orders", generation_id_or_member_epoch=3, member_id=_MEMBER, topics=topics
    )


SAMPLES: list[tuple[str, Any, int, Callable[..., Any], Callable[..., Any]]] = [
    (
        "HeartbeatRequest v4",
        HeartbeatRequest(group_id="orders", generation_id=3, member_id=_MEMBER),
        4,
        _read_heartbeat,
        _write_heartbeat,
    ),
    ("HeartbeatResponse v4", HeartbeatResponse(), 4, _read_heartbeat_response, _write_heartbeat_response),
    ("OffsetCommitRequest v8, 1 partition", _commit(1), 8, _read_commit, _write_commit),
    ("OffsetCommitRequest v8, 50 partitions", _commit(50), 8, _read_commit, _write_commit),
]


def nanoseconds(function: Callable[..., Any], *arguments: Any) -> float:
    """The least time that one call took."""
    timer = timeit.Timer(partial(function, *arguments), timer=process_time)
    number = max(timer.autorange()[0] // 4, 1)
    return min(timer.repeat(5, number)) / number * 1e9


def run(*_: object) -> None:
    print(f"{'':46}{'construct':>10}{'by hand':>10}{'ours':>10}   ours / by hand")
    for name, value, version, read, write in SAMPLES:
        cls: Any = type(value)
        construct, decode, encode = reference(cls, version), decoder(cls, version), encoder(cls, version)
        frame = encode(value)
        assert write(value) == frame == construct.build(value)
        assert read(frame, 0)[1] == len(frame)
        assert decode(frame, 0) == (value, len(frame))
        figures(
            f"{name} decode",
            nanoseconds(construct.parse, frame),
            nanoseconds(read, frame, 0),
            nanoseconds(decode, frame, 0),
        )
        figures(
            f"{name} encode",
            nanoseconds(construct.build, value),
            nanoseconds(write, value),
            nanoseconds(encode, value),
        )


def figures(name: str, construct_ns: float, hand_ns: float, ours_ns: float) -> None:
    """Print one line of the table."""
    print(f"{name:46}{construct_ns:7.0f} ns{hand_ns:7.0f} ns{ours_ns:7.0f} ns   {ours_ns / hand_ns:.2f}")
