"""Commands of a running server that Kafka's protocol can carry out as well, on kshim or any other cluster.

Each function returns the JSON value that the server's command returns. What only kshim knows is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kshim.client import groups
from kshim.client.cluster import Cluster, retry_or_check
from kshim.client.faults import ClientError, Refused, check
from kshim.client.groups import Member, TopicPartition
from kshim.client.offsets import LATEST, offsets
from kshim.client.steering import STEERING
from schemas.error_code import ErrorCode
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

_MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


# ---- groups


def all_groups(cluster: Cluster) -> dict[str, Any]:
    """The groups with their lag, but without what kshim's recorder knows."""
    ends = Ends(cluster)
    rows = []
    for listed in groups.listed(cluster):
        try:
            found = groups.described(cluster, listed.group_id)
            offsets_of = groups.committed(cluster, listed.group_id)
        except Refused as refused:
            rows.append(_row(listed.group_id, refused.args[0].rpartition(": ")[2], listed.coordinator))
            continue
        except ClientError:
            continue  # the group is gone, or is none of consumers
        known = ends.lags(offsets_of)
        rows.append(
            {
                **_row(found.group_id, found.state, found.coordinator),
                "protocol": found.protocol,
                "protocol_type": listed.protocol_type,
                "members": len(found.members),
                "committed": sum(offsets_of.values()),
                "lag": sum(known.values()) if known else None,
            }
        )
    return {"now_ms": int(time.time() * 1000), "groups": rows}


def _row(group_id: str, state: str, coordinator: int) -> dict[str, Any]:
    return {
        **{"group_id": group_id, "state": state, "coordinator": coordinator, "members": 0, "committed": 0},
        **{"lag": None, "because": "", "began_ms": None, "waits_for": [], "last": None, "scores": None},
    }


def described_group(cluster: Cluster, group_id: str) -> dict[str, Any]:
    """A group, with a row for each partition that it has, and for each member without a partition."""
    found, committed = groups.described(cluster, group_id), groups.committed(cluster, group_id)
    owners = {each: member for member in found.members for each in member.partitions}
    ends = Ends(cluster)
    rows = [
        _offset_row(each, owners.get(each), committed.get(each), ends.of(each[0]).get(each[1]))
        for each in sorted(committed.keys() | owners.keys())
    ]
    rows += [_offset_row((None, None), each, None, None) for each in found.members if not each.partitions]
    return {
        "group_id": group_id,
        "state": found.state,
        "protocol": found.protocol,
        "coordinator": found.coordinator,
        "members": len(found.members),
        "rows": rows,
    }


def _offset_row(
    place: tuple[str | None, int | None], owner: Member | None, committed: int | None, end: int | None
) -> dict[str, Any]:
    return {
        "topic": place[0],
        "partition": place[1],
        "committed": committed,
        "end": end,
        "lag": None if committed is None or end is None else max(0, end - committed),
        "member_id": None if owner is None else owner.member_id,
        "instance_id": None if owner is None else owner.instance_id,
        "client_id": None if owner is None else owner.client_id,
        "host": None if owner is None else owner.host,
    }


class Ends:
    """The ends of partitions, each topic asked for once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends: dict[str, Mapping[int, int]] = {}

    def lags(self, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """How far each committed offset is behind. Partitions that do not exist are left out."""
        found = {}
        for (topic, partition), offset in committed.items():
            end = self.of(topic).get(partition)
            if end is not None:
                found[topic, partition] = max(0, end - offset)
        return found

    def of(self, name: str) -> Mapping[int, int]:
        """The end of each partition of a topic; none if it does not exist."""
        if name not in self._ends:
            try:
                topic = self._cluster.topic(name)
                self._ends[name] = offsets(self._cluster, topic, topic.partitions, LATEST)
            except ClientError:
                self._ends[name] = {}
        return self._ends[name]


# ---- brokers


def describe(cluster: Cluster) -> dict[str, Any]:
    """The running brokers and all partitions. Stopped brokers are not known to Kafka's protocol."""
    topics = cluster.topics()
    partitions = [(topic, each) for topic in topics for each in topic.partitions.values()]
    led = [each.leader for _, each in partitions]
    return {
        "cluster_id": cluster.cluster_id or "",
        "controller_id": cluster.controller_id,
        "brokers": [
            {
                "node_id": each.node_id,
                "address": str(each.address),
                "listeners": {"": str(each.address)},
                "state": "running",
                "leads": led.count(each.node_id),
            }
            for _, each in sorted(cluster.brokers.items())
        ],
        "partitions": [
            {
                "topic": topic.name,
                "partition": each.number,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.in_sync,
                "is_internal": topic.is_internal,
            }
            for topic, each in partitions
        ],
    }


# ---- users


def list_users(cluster: Cluster) -> list[dict[str, Any]]:
    def ask() -> Any:
        found = cluster.ask(cluster.any(), DescribeUserScramCredentialsRequest(users=None))
        retry_or_check("users", found.error_code, found.error_message)
        return found

    return sorted(
        (
            {
                "user": each.user,
                "mechanism": _MECHANISMS.get(info.mechanism, "?"),
                "iterations": info.iterations,
            }
            for each in cluster.until_done(ask).results
            for info in each.credential_infos
        ),
        key=lambda each: (each["user"], each["mechanism"]),
    )


def put_user(
    cluster: Cluster, name: str, mechanism: str, iterations: int, salt: str, salted_password: str
) -> None:
    credential = ScramCredentialUpsertion(
        name=name,
        mechanism=_number(mechanism),
        iterations=iterations,
        salt=bytes.fromhex(salt),
        salted_password=bytes.fromhex(salted_password),
    )
    _alter_users(cluster, AlterUserScramCredentialsRequest(upsertions=(credential,)))


def remove_user(cluster: Cluster, name: str, mechanism: str) -> bool:
    deletion = ScramCredentialDeletion(name=name, mechanism=_number(mechanism))
    try:
        _alter_users(cluster, AlterUserScramCredentialsRequest(deletions=(deletion,)))
    except Refused as refused:
        if refused.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            return False
        raise
    return True


def _alter_users(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    def ask() -> None:
        for each in cluster.ask(cluster.controller(), request).results:
            check(f"user {each.user}", each.error_code, each.error_message)

    cluster.until_done(ask)


def _number(mechanism: str) -> int:
    return next(number for number, name in _MECHANISMS.items() if name == mechanism)


BY_KAFKA: Final[Mapping[str, Callable[..., Any]]] = {
    **STEERING,
    "groups": all_groups,
    "describe": describe,
    "list-users": list_users,
    "put-user": put_user,
    "remove-user": remove_user,
}
"""The functions that ask over Kafka's protocol, by the names of the server's commands."""
