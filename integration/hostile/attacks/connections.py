"""Attacks with many, idle or slow connections, and with names that try to forge lines in the log."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from integration.hostile.attack import Attack, Volley
from integration.hostile.requests import TIMEOUT_MS, new_topic
from integration.hostile.run import FORGED
from kshim.testing.wire import Wire, framed
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

ANNOUNCED_BYTES = 100_000_000
SENT_BYTES = 20_000_000
ENDS_OF_LINES = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\0\n", "\x1b[2K\r", "\x1b[31m\n")
LINE = f"2026-01-01 00:00:00.000Z INFO    {FORGED}"


def _idle_connections(wire: Wire) -> Sequence[Volley]:
    return [Volley(label="idle connections", connections=2000, reads=False, hold_s=3)]


def _half_frames(wire: Wire) -> Sequence[Volley]:
    half = struct.pack(">i", ANNOUNCED_BYTES) + b"\0"
    return [Volley(label="half frames", frames=[half], connections=1000, reads=False, hold_s=3)]


def _cut_frames(wire: Wire) -> Sequence[Volley]:
    cut = struct.pack(">i", ANNOUNCED_BYTES) + bytes(SENT_BYTES)
    return [Volley(label="cut frames", frames=[cut], connections=40, reads=False, hold_s=3)]


def _slow_senders(wire: Wire) -> Sequence[Volley]:
    frame = framed(4, MetadataRequest(topics=None))
    return [Volley(label="slow senders", frames=[frame], connections=200, byte_interval_s=0.05)]


def _log_injection(wire: Wire) -> Sequence[Volley]:
    frames = [framed(*asked, client_id=end + LINE) for end in ENDS_OF_LINES for asked in _naming(end + LINE)]
    frames += [framed(*asked, client_id="c") for asked in _naming("x" * 32_767)]
    return [Volley(label="names with ends of lines", frames=frames)]


def _naming(name: str) -> list[tuple[int, Any]]:
    """Requests, with their versions, that make the server log lines with `name`."""
    join = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id=name[:10] + "instance",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name=name),),
        reason=name,
    )
    leave = LeaveGroupRequest(
        group_id=name, members=(MemberIdentity(group_instance_id=name[:10] + "instance", reason=name),)
    )
    topics = (new_topic(name),)
    return [
        (8, join),
        (5, leave),
        (2, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)),
        (3, FindCoordinatorRequest(key=name)),
        (4, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)),
        (4, MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)),
    ]


ATTACKS = (
    Attack(
        name="idle-connections",
        what="2,000 connections from one address that send nothing",
        arm=_idle_connections,
        quick=True,
    ),
    Attack(
        name="half-frames",
        what="1,000 connections that announce 100 MB and send one byte",
        arm=_half_frames,
        quick=True,
    ),
    Attack(
        name="cut-frames",
        what="40 connections that announce 100 MB and send 20",
        arm=_cut_frames,
    ),
    Attack(
        name="slow-senders",
        what="200 connections that send their requests byte by byte",
        arm=_slow_senders,
        quick=True,
    ),
    Attack(
        name="log-injection",
        what="names and reasons with ends of lines and escape codes, and very long ones",
        arm=_log_injection,
        quick=True,
    ),
)
