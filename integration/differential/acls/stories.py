"""Administrators' requests about ACLs, also invalid ones. Each is a step that both servers answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from integration.differential.acls.matrix import plain
from integration.differential.acls.world import World
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.describe_acls import DescribeAclsRequest

ANYTHING: Mapping[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
A = "User:storyteller"
Acl = tuple[int, str, int, str, str, int, int]
"""Resource type, name, pattern type, principal, host, operation, permission."""
GOOD: list[Acl] = [
    (2, "story", 3, A, "*", 3, 3),
    (2, "story", 3, A, "10.0.0.1", 4, 2),
    (2, "st", 4, A, "*", 15, 3),
    (2, "*", 3, A, "*", 2, 2),
    (2, "*", 4, A, "*", 8, 3),
    (3, "story", 3, f"{A}:with:colons", "*", 3, 3),
    (3, "no name of a group\n", 3, A, "", 3, 3),
    (4, "kafka-cluster", 3, A, "not an address", 12, 3),
    (4, "kafka-cluster", 4, A, "*", 7, 3),
    (5, "story", 4, "Group:storytellers", "*", 8, 3),
    (6, "token", 3, A, "*", 8, 3),
    (7, "User:bob", 3, A, "*", 13, 3),
    (2, "story", 3, "User:", "*", 3, 3),
    (2, "story", 3, ":storyteller", "*", 3, 3),
    (2, "story", 3, A, "*", 13, 3),
]
WRONG: list[Acl] = [
    (4, "cluster", 3, A, "*", 3, 3),
    (4, "", 3, A, "*", 3, 3),
    (2, "", 3, A, "*", 3, 3),
    (2, "", 99, A, "*", 3, 3),
    (2, "story", 3, "", "*", 3, 3),
    (2, "story", 3, "storyteller", "*", 3, 3),
    (99, "story", 3, "storyteller", "*", 3, 3),
    (99, "story", 99, A, "*", 99, 99),
    (2, "story", 99, A, "*", 99, 99),
    (2, "story", 3, A, "*", 99, 99),
    (2, "story", 3, A, "*", 3, 99),
    (1, "story", 3, A, "*", 3, 3),
    (2, "story", 1, A, "*", 3, 3),
    (2, "story", 2, A, "*", 3, 3),
    (2, "story", 3, A, "*", 1, 3),
    (2, "story", 3, A, "*", 3, 1),
    (0, "story", 3, A, "*", 3, 3),
    (2, "story", 3, A, "*", 3, 0),
]
FILTERS: list[Mapping[str, Any]] = [
    {},
    *({"resource_type_filter": code} for code in (2, 3, 4, 5, 6, 7, 99, 0)),
    *({"resource_name_filter": name} for name in ("story", "st", "*", "", "stories")),
    *({"resource_name_filter": name, "pattern_type_filter": 2} for name in ("story", "stories", "x", "*")),
    *({"resource_name_filter": "st", "pattern_type_filter": code} for code in (3, 4)),
    *({"pattern_type_filter": code} for code in (2, 3, 4, 99, 0)),
    *({"principal_filter": name} for name in (A, "User:*", "storyteller", "")),
    *({"host_filter": host} for host in ("*", "10.0.0.1", "")),
    *({"operation": code} for code in (2, 3, 15, 99, 0)),
    *({"permission_type": code} for code in (2, 3, 99, 0)),
]


def create(*acls: Acl) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=tuple(
            AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=principal,
                host=host,
                operation=operation,
                permission_type=permission,
            )
            for kind, name, pattern, principal, host, operation, permission in acls
        )
    )


def steps() -> Iterator[Any]:
    """All requests, in their order; nothing but the last ones deletes."""
    for acl in (*GOOD, *WRONG):
        yield create(acl)
    yield create()
    yield create(*GOOD)
    yield create(WRONG[0], GOOD[0], WRONG[4])
    yield create(GOOD[0], WRONG[11])
    for fields in FILTERS:
        yield DescribeAclsRequest(**{**ANYTHING, **fields})
    storytellers = {"principal_filter": A}
    yield DeleteAclsRequest()
    for fields in FILTERS[1:]:
        if not fields.keys() <= {"host_filter", "principal_filter"}:  # those of others stay
            deleted = DeleteAclsFilter(**{**ANYTHING, **storytellers, **fields})
            yield DeleteAclsRequest(filters=(deleted, deleted))
    yield DescribeAclsRequest(**{**ANYTHING, **storytellers})


def tell(world: World, version: int, expected: list[Any] | None) -> list[Any]:
    """What the administrator is answered. expected: what the other server has answered, to which this one,
    which may answer before a change is in force, is given time.
    """
    told: list[Any] = []
    for request in steps():
        if expected is None:
            told.append(_told(world.admin(version, request)))
        else:
            is_hoped = partial(_is_told, expected[len(told)])
            told.append(_told(world.until(version, request, is_hoped)))
    return told


def _is_told(hoped: Any, answer: Any) -> bool:
    return bool(_told(answer) == hoped)


def _told(answer: Any) -> Any:
    """An answer about the ACLs of this story."""
    shown = plain(answer)
    if isinstance(shown, dict) and "resources" in shown:
        resources = [
            {**each, "acls": [acl for acl in each["acls"] if "storyteller" in acl["principal"]]}
            for each in shown["resources"]
        ]
        return {**shown, "resources": [each for each in resources if each["acls"]]}
    return shown
