"""Which differences between two transcripts are meant: the keys of docs/differences.md, as rules.

A hand-written history names the step and the key. For invented ones these rules find them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from integration.apache_kafka.jars import RELEASE
from integration.differential.older import NEWER_CONFIGS
from integration.differential.playing.asking import CLOSED
from integration.differential.playing.compare import Difference, in_part, without_configs
from integration.differential.playing.player import Asked, Transcript, errors
from integration.differential.words.admin import APPEND, SUBTRACT
from integration.differential.words.history import Ask, Pause, Step
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.alter_configs import AlterConfigsRequest
from schemas.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.produce import ProduceRequest

NEWER = NEWER_CONFIGS.get(RELEASE, frozenset())
"""The configs that Apache Kafka lacks here."""

REFUSES_A_JOIN = {
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
CLIENT_METRICS = 16
MAY_DIFFER: Mapping[str, Callable[[str, Any], bool]] = {
    "D-error-text": lambda name, _: name.endswith("error_message"),
    "D-assignment-interval": lambda _, value: (
        isinstance(value, dict) and value.get("name") == "consumer.assignment.interval.ms"
    ),
    "D-elr": lambda _, value: isinstance(value, dict) and value.get("name") == "min.insync.replicas",
    "D-config-resources": lambda _, value: (
        isinstance(value, dict) and value.get("resource_type") == CLIENT_METRICS
    ),
}
"""The parts of an answer that are meant to differ: called with a field's name and value, or "" and an array's
item."""
OF_A_BATCH = ("D-error-text", "D-reason-of-a-refused-batch")
MAY_WAIT = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}


def by_rule(
    found: Sequence[Difference], steps: Sequence[Step], apache_kafka: Transcript, kshim: Transcript
) -> list[Difference]:
    """`found` up to the point where the servers are meant to part, each with its key if a rule knows one.

    With an older release as the judge, configs that it lacks do not count.
    """
    if NEWER:
        found = in_part(found, partial(without_configs, names=NEWER))
    end = min(parting(steps, apache_kafka), parting(steps, kshim))
    forgotten = dict(forgotten_requests(apache_kafka, kshim))
    connections = {kshim.seen[number].step.connection for number in forgotten}

    def key(difference: Difference) -> str:
        if (
            isinstance(difference.step, Pause)
            and {*difference.apache_kafka} ^ {*difference.kshim} <= connections
        ):
            return "D-older-of-two"
        asked = apache_kafka.seen[difference.number]
        if isinstance(asked, Asked) and is_unknown_operation(difference, asked.request):
            return "D-unknown-operation"
        return key_of_parts(difference) or forgotten.get(difference.number, "")

    return [
        dataclasses.replace(difference, key=key(difference))
        for difference in found
        if difference.number < end
    ]


def key_of_parts(difference: Difference) -> str:
    """The key of a difference that lies only in parts of the answer that may differ; "" for any other."""
    for count in range(1, len(MAY_DIFFER) + 1):
        for keys in combinations(MAY_DIFFER, count):
            if _without(difference.apache_kafka, keys) == _without(difference.kshim, keys):
                return " ".join(keys).replace(*OF_A_BATCH) if _is_produce(difference) else " ".join(keys)
    return ""


def _is_produce(difference: Difference) -> bool:
    return isinstance(difference.step, Ask) and difference.step.api_key is ApiKey.PRODUCE


def _without(value: Any, keys: Collection[str]) -> Any:
    """A plain answer without the parts that may differ by these keys."""
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
    """The steps, and their keys, whose request Apache Kafka never answers and kshim refuses with an error."""
    for number, (theirs, ours) in enumerate(zip(apache_kafka.seen, kshim.seen, strict=True)):
        if not isinstance(theirs, Asked) or not isinstance(ours, Asked) or theirs.is_answered.is_set():
            continue
        if not ours.is_answered.is_set():
            continue
        if has_null_records(ours.request) and is_refused(ours):
            yield number, "D-null-records"
        if names_one_twice(ours.request) and set(errors(ours.answer)) == {ErrorCode.INVALID_REQUEST}:
            yield number, "D-one-resource-twice"
        if theirs.step.api_key not in MAY_WAIT:
            continue
        error = getattr(ours.answer, "error_code", None)
        if error == ErrorCode.REBALANCE_IN_PROGRESS and _is_asked_again(kshim, number):
            yield number, "D-older-of-two"
        elif error == ErrorCode.UNKNOWN_MEMBER_ID and theirs.step.api_key is ApiKey.SYNC_GROUP:
            yield number, "D-parked-sync-of-a-leaver"


def is_refused(asked: Asked) -> bool:
    """True if a Produce is refused for its records. With acks=0 the server closes the connection instead."""
    if isinstance(asked.answer, str):
        return asked.answer == CLOSED and asked.request.acks == 0
    return set(errors(asked.answer)) == {ErrorCode.INVALID_RECORD}


def has_null_records(request: Any) -> bool:
    return isinstance(request, ProduceRequest) and any(
        data.records is None for topic in request.topic_data for data in topic.partition_data
    )


def names_one_twice(request: Any) -> bool:
    """True if an AlterConfigs names one resource more than once, and no other resource."""
    if not isinstance(request, AlterConfigsRequest):
        return False
    named = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    return len(named) > 1 and len(set(named)) == 1


def is_unknown_operation(difference: Difference, request: Any) -> bool:
    """Whether the answers differ only in how they refuse an unknown operation, or an APPEND or SUBTRACT to an
    unknown config."""
    theirs, ours = difference.apache_kafka, difference.kshim
    if not isinstance(request, IncrementalAlterConfigsRequest) or not isinstance(theirs, dict):
        return False
    operations = {config.config_operation for each in request.resources for config in each.configs}
    may_be = {"INVALID_REQUEST"} if operations - {*range(4)} else set()
    may_be |= {"INVALID_CONFIG"} if operations & {APPEND, SUBTRACT} else set()
    return len(theirs["responses"]) == len(ours["responses"]) and all(
        one["error_code"] == other["error_code"]
        or (one["error_code"] == "UNKNOWN_SERVER_ERROR" and other["error_code"] in may_be)
        for one, other in zip(theirs["responses"], ours["responses"], strict=True)
    )


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
    """The first step from which on the servers' groups are meant to differ (D-pending-id-leaves): a client
    leaves that was given a member id and has not joined with it. Without such a step, the number of steps."""
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
