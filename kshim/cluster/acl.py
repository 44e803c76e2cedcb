"""Access control lists (ACLs): their fields, Kafka's refusals of new ones, and filters (KIP-11, KIP-290).

Pure. An ACL allows or denies one principal, from one host, one operation on the resources of a pattern.
"""

from __future__ import annotations

import hashlib
import json
from enum import IntEnum
from typing import Final, NamedTuple

from kshim.cluster.checks import Refusal
from schemas.error_code import ErrorCode

WILDCARD: Final = "*"
"""Any host; any resource, as the name of a literal pattern."""
EVERYBODY: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of the type CLUSTER."""


class AclResource(IntEnum):
    """The types of resources; ResourceType in Kafka."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The ways to compare an ACL's name with names of resources. Only filters have ANY and MATCH."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """The operations that an ACL allows or denies."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """The effect of an ACL; AclPermissionType in Kafka. Only filters have ANY."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: int
    name: str
    pattern_type: int


class Acl(NamedTuple):
    """One ACL. Its codes are numbers as a client sent them, known or not."""

    pattern: Pattern
    principal: str
    """A type and a name, such as "User:alice"."""
    host: str
    operation: int
    permission: int

    @property
    def is_filter(self) -> bool:
        """True if the ACL has a code that only filters have.

        Apache Kafka fails at such an ACL, and then makes no ACL of the request.
        """
        return (
            self.pattern.resource_type == AclResource.ANY
            or self.pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
            or self.operation == AclOperation.ANY
            or self.permission == Permission.ANY
        )


class AclFilter(NamedTuple):
    """A filter of ACLs. None finds every text, and the ANY of an enum every code."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def finds(self, acl: Acl) -> bool:
        return (
            self.resource_type in (AclResource.ANY, acl.pattern.resource_type)
            and self._finds_name(acl.pattern)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _finds_name(self, pattern: Pattern) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if pattern.pattern_type == PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == WILDCARD


_CODES: Final[dict[type[IntEnum], frozenset[int]]] = {
    code: frozenset(map(int, code)) for code in (AclResource, PatternType, AclOperation, Permission)
}


def refuse_acl(acl: Acl) -> Refusal | None:
    """The first reason in Kafka's order against making an ACL; None if it can be made.

    acl: without codes that only filters have.
    """
    pattern = acl.pattern
    fault = None
    if pattern.resource_type == AclResource.CLUSTER and pattern.name != CLUSTER_NAME:
        fault = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not pattern.name:
        fault = "Invalid empty resource name"
    elif pattern.resource_type not in _CODES[AclResource]:
        fault = "Invalid resourceType UNKNOWN"
    elif pattern.pattern_type not in _CODES[PatternType]:
        fault = "Invalid patternType UNKNOWN"
    elif acl.operation not in _CODES[AclOperation]:
        fault = "Invalid operation UNKNOWN"
    elif acl.permission not in _CODES[Permission]:
        fault = "Invalid permissionType UNKNOWN"
    elif ":" not in acl.principal:
        fault = (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal "
            "type from the principal name)"
        )
    elif not acl.host:
        fault = "Host pattern cannot be null or empty"
    return Refusal(ErrorCode.INVALID_REQUEST, fault) if fault else None


def refuse_filter(wanted: AclFilter) -> Refusal | None:
    """The refusal of a filter with a code that Kafka lacks; None for any other filter."""
    fault = None
    if wanted.resource_type not in _CODES[AclResource] or wanted.pattern_type not in _CODES[PatternType]:
        fault = "Unknown patternFilter."
    elif wanted.operation not in _CODES[AclOperation] or wanted.permission not in _CODES[Permission]:
        fault = "Unknown entryFilter."
    return Refusal(ErrorCode.INVALID_REQUEST, fault) if fault else None


# ---- stored


def stored_key(acl: Acl) -> bytes:
    """A key of fixed length for an ACL, whose names may be long."""
    return hashlib.sha256(encode_acl(acl)).hexdigest().encode()


def encode_acl(acl: Acl) -> bytes:
    return json.dumps(acl).encode()


def decode_acl(stored: bytes) -> Acl:
    pattern, *rest = json.loads(stored)
    return Acl(Pattern(*pattern), *rest)
