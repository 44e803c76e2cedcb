"""Which differences between two transcripts are meant: the keys of docs/differences.md, as rules.

A history that somebody wrote names the step and the key. Where nobody wrote it, these rules find them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

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
        if all(field.endswith("error_message") for field in difference.fields):
            return "D-error-text"
        return forgotten.get(difference.number, "")

    return [
        dataclasses.replace(difference, key=key(difference))
        for difference in found
        if difference.number < end
    ]


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
