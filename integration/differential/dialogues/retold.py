"""Turns a dialogue into lines of text that are the same whenever the same was said.

Each client's *acts* are kept in their order: joins, syncs, leaves, commits. Its *chatter* is what it repeats
while time passes (fetches, metadata, heartbeats with an error): each different line is kept once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from integration.differential.dialogues.dialogue import Exchange, Recorder
from integration.differential.playing.compare import SETS, SETS_WHEN_ALL_ARE_ASKED_FOR, Plain
from integration.differential.playing.player import Transcript
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.join_group import JoinGroupResponse

ACTS = {
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
}
TIME_PASSED = re.compile(r"HEARTBEAT v\d+ -> NONE")
GIVES_AN_ID = {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}
UNORDERED = {
    *SETS,
    *SETS_WHEN_ALL_ARE_ASKED_FOR,
    ("SyncGroupRequest", "assignments"),
    ("OffsetCommitRequestTopic", "partitions"),
    ("OffsetCommitResponseTopic", "partitions"),
}
BY_CHANCE = {("OffsetCommitRequestPartition", "committed_leader_epoch")}
"""kafka-python forgets the epoch of a position when a fetch brings no record of that partition."""


@dataclass(frozen=True)
class Part:
    """One client's part of the dialogue: see the module."""

    acts: list[str]
    chatter: frozenset[str]


def retold(recorder: Recorder, group: str) -> Mapping[str, Part]:
    """The part of each client."""
    plain = Plain(_transcript(recorder, group), UNORDERED, BY_CHANCE)
    clients = sorted({exchange.client for exchange in recorder.exchanges})
    return {
        client: _part([each for each in recorder.exchanges if each.client == client], plain)
        for client in clients
    }


def _transcript(recorder: Recorder, group: str) -> Transcript:
    """The ids that each client was given; the clients see the server at the proxy's address."""
    target = recorder.target
    transcript = Transcript(type(target)(recorder.host, recorder.port, target.topic_ids), group)
    for number, exchange in enumerate(recorder.exchanges):
        answer = exchange.response
        if isinstance(answer, JoinGroupResponse) and answer.error_code in GIVES_AN_ID:
            transcript.given.setdefault(exchange.client, {}).setdefault(answer.member_id, number)
    return transcript


def _part(exchanges: Iterable[Exchange], plain: Plain) -> Part:
    acts: list[str] = []
    chatter: set[str] = set()
    for exchange in exchanges:
        name = f"{ApiKey(exchange.api_key).name} v{exchange.version}"
        if exchange.api_key in ACTS:
            acts.append(f"{name}: {plain.plain(exchange.request)} -> {_answer(exchange.response, plain)}")
        elif exchange.response is not None:
            chatter.add(f"{name} -> {_error(exchange.response)}")
    return Part(acts, frozenset(line for line in chatter if not TIME_PASSED.fullmatch(line)))


def _answer(response: Any, plain: Plain) -> str:
    return "no answer" if response is None else str(plain.plain(response))


def _error(response: Any) -> str:
    return ErrorCode(getattr(response, "error_code", 0)).name
