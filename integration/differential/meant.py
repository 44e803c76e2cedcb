"""Which differences between two transcripts are meant: the keys of docs/differences.md, as rules.

A history that somebody wrote names the step and the key. Where nobody wrote it, these rules find them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from integration.differential.compare import Difference
from integration.differential.history import Pause, Step
from integration.differential.player import Asked, Transcript
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.leave_group import LeaveGroupRequest

REFUSES_A_JOIN = {
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
NOT_SERVED = {16, 32}
"""Configs of client metrics and of groups."""
MAY_DIFFER: Mapping[str, Callable[[str, Any], bool]] = {
    "D-error-text": lambda name, _: name.endswith("error_message"),
    "D-elr": lambda _, value: isinstance(value, dict) and value.get("name") == "min.insync.replicas",
    "D-config-resources": lambda _, value: (
        isinstance(value, dict) and value.get("resource_type") in NOT_SERVED
    ),
}
"""What of an answer is meant to differ: of a field its name and value, of an item in an array its value."""
MAY_WAIT = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


def by_rule(
    found: Sequence[Difference], steps: Sequence[Step], apache_kafka: Transcript, kshim: Transcript
) -> list[Difference]:
    """`found`, with a key where a rule tells that a difference is meant, and no more than can be compared."""
    end = min(parting(steps, apache_kafka), parting(steps, kshim))
    forgotten = dict(forgotten_requests(apache_kafka, kshim))
    connections = {kshim.seen[number].step.connection for number in forgotten}  # type: ignore[union-attr]

    def key(difference: Difference) -> str:
        if (
            isinstance(difference.step, Pause)
            and {*difference.apache_kafka} ^ {*difference.kshim} <= connections
        ):
            return "D-older-of-two"
        return key_of_parts(difference) or forgotten.get(difference.number, "")

    return [
        dataclasses.replace(difference, key=key(difference))
        for difference in found
        if difference.number < end
    ]


def key_of_parts(difference: Difference) -> str:
    """The key of a difference that is only in parts of the answer that may differ; "" of any other."""
    for count in range(1, len(MAY_DIFFER) + 1):
        for keys in combinations(MAY_DIFFER, count):
            if _without(difference.apache_kafka, keys) == _without(difference.kshim, keys):
                return " ".join(keys)
    return ""


def _without(value: Any, keys: Collection[str]) -> Any:
    """A plain answer without what may differ by these keys."""
    may_differ = [MAY_DIFFER[key] for key in keys]
    if isinstance(value, list):
        return [_without(item, keys) for item in value if not any(each("", item) for each in may_differ)]
    if isinstance(value, dict):
        return {
            name: _without(field, keys)
            for name, field in value.items()
            if not any(each(name, field) for each in may_differ)
        }
    return value


def forgotten_requests(apache_kafka: Transcript, kshim: Transcript) -> Iterator[tuple[int, str]]:
    """The steps whose request Apache Kafka never answers, and kshim does with an error; with their keys."""
    for number, (theirs, ours) in enumerate(zip(apache_kafka.seen, kshim.seen, strict=True)):
        if not isinstance(theirs, Asked) or not isinstance(ours, Asked) or theirs.is_answered.is_set():
            continue
        if theirs.step.api_key not in MAY_WAIT or not ours.is_answered.is_set():
            continue
        error = getattr(ours.answer, "error_code", None)
        if error == ErrorCode.REBALANCE_IN_PROGRESS and _is_asked_again(kshim, number):
            yield number, "D-older-of-two"
        elif error == ErrorCode.UNKNOWN_MEMBER_ID and theirs.step.api_key is ApiKey.SYNC_GROUP:
            yield number, "D-parked-sync-of-a-leaver"


def _is_asked_again(transcript: Transcript, number: int) -> bool:
    asked = transcript.seen[number]
    assert isinstance(asked, Asked)
    return any(
        isinstance(later, Asked)
        and later.step.api_key is asked.step.api_key
        and later.request.member_id == asked.request.member_id
        for later in transcript.seen[number + 1 :]
    )


def parting(steps: Sequence[Step], transcript: Transcript) -> int:
    """The first step from which on the servers' groups are meant to differ (D-pending-id-leaves): somebody
    leaves who was given an id and did not join with it. The number of steps where there is none."""
    pending: set[str] = set()
    for number, asked in enumerate(transcript.seen):
        if not isinstance(asked, Asked):
            continue
        if isinstance(asked.request, JoinGroupRequest):
            answer = asked.answer
            if getattr(answer, "error_code", ErrorCode.NONE) not in REFUSES_A_JOIN:
                pending.discard(asked.request.member_id)
            if isinstance(answer, JoinGroupResponse) and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                pending.add(answer.member_id)
        elif isinstance(asked.request, LeaveGroupRequest):
            leaving = {asked.request.member_id, *(member.member_id for member in asked.request.members)}
            if pending & leaving:
                return number
    return len(steps)
