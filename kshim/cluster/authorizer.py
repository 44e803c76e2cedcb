"""Decides who may do what, by access control lists, as Kafka's StandardAuthorizer does.

Pure. A decision is the set of all operations that a principal may perform on a resource from a host, as the
bits of KIP-430. It takes a few look-ups, however many ACLs there are: for the resource's own name, for `*`,
and for each length that a prefixed pattern has, the ACLs of this principal and host are two masks. Prefixes
of many lengths make it take longer: `cost_us` says how long.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Final

from kshim.cluster.acl import (
    EVERYBODY,
    WILDCARD,
    Acl,
    AclOperation,
    Pattern,
    PatternType,
    Permission,
)

MOST_KNOWN = 10_000
"""How many decisions are kept for the next time."""
LONGEST_KNOWN = 500
"""Characters of the name in a decision that is kept."""

DECISION_US = 5
PREFIX_NS, CHARACTER_NS = 250, 1
"""A decision takes longer by so much for each length of a prefix, and for each character that is hashed."""

_REAL: Final = [each for each in AclOperation if each > AclOperation.ALL]
EVERYTHING: Final = sum(1 << operation for operation in _REAL)
_OWN: Final = {AclOperation.ALL: EVERYTHING, **{each: 1 << each for each in _REAL}}
_DESCRIBE, _DESCRIBE_CONFIGS = 1 << AclOperation.DESCRIBE, 1 << AclOperation.DESCRIBE_CONFIGS
_IMPLIED: Final = {
    AclOperation.READ: _DESCRIBE,
    AclOperation.WRITE: _DESCRIBE,
    AclOperation.DELETE: _DESCRIBE,
    AclOperation.ALTER: _DESCRIBE,
    AclOperation.ALTER_CONFIGS: _DESCRIBE_CONFIGS,
}
"""What is allowed, too, to whom an operation is allowed. Who is denied it is not denied the other."""

Asker = tuple[str, str]
"""A principal and a host, each of which may be the one of an ACL for all."""


class Rights:
    """What the ACLs of one pattern, principal and host say."""

    __slots__ = ("acls", "allowed", "denied")

    def __init__(self) -> None:
        self.acls: set[Acl] = set()
        self.allowed = self.denied = 0
        """Bits of operations, with those that are implied."""

    def sum_up(self) -> None:
        self.allowed = self.denied = 0
        for acl in self.acls:
            operation = AclOperation(acl.operation)
            if acl.permission == Permission.ALLOW:
                self.allowed |= _OWN[operation] | _IMPLIED.get(operation, 0)
            else:
                self.denied |= _OWN[operation]


class Authorizer:
    """All ACLs, and what follows from them."""

    def __init__(self, super_users: Collection[str] = (), *, allow_everyone: bool = False) -> None:
        """super_users: principals that may do everything. allow_everyone: whether anybody may do anything
        with a resource that no ACL is about.
        """
        self.version = 0
        """Rises whenever somebody may do something else than before."""
        self._super_users = frozenset(super_users)
        self._without_acl = EVERYTHING if allow_everyone else 0
        self._rights: dict[Pattern, dict[Asker, Rights]] = {}
        self._prefixed: defaultdict[int, dict[str, dict[Asker, Rights]]] = defaultdict(dict)
        """By resource type and name: the rights of prefixed patterns once more."""
        self._prefixes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """By resource type: how many prefixed patterns there are of each length."""
        self._lengths: defaultdict[int, list[int]] = defaultdict(list)
        """The same lengths, sorted."""
        self._known: dict[tuple[str, str, int, str], int] = {}
        self._known_any: dict[tuple[str, str, int, int], bool] = {}

    # ---- the decision

    def cost_us(self, resource_type: int, name: str) -> int:
        """How long a decision about a resource may take."""
        lengths = self._lengths.get(resource_type)
        prefixes = bisect_right(lengths, len(name)) if lengths else 0
        return DECISION_US + prefixes * (PREFIX_NS + CHARACTER_NS * len(name)) // 1000

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """The bits of all operations that `principal` may perform on a resource from `host`."""
        question = principal, host, resource_type, name
        known = self._known.get(question)
        if known is None:
            known = self._decide(principal, host, resource_type, name)
            if len(name) <= LONGEST_KNOWN:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[question] = known
        return known

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether `principal` may perform one operation on a resource from `host`."""
        return bool(self.operations(principal, host, resource_type, name) >> operation & 1)

    def _decide(self, principal: str, host: str, resource_type: int, name: str) -> int:
        if principal in self._super_users:
            return EVERYTHING
        allowed = denied = 0
        has_acls = False
        for rights in self._of_resource(resource_type, name):
            has_acls = True
            for asker in _askers(principal, host):
                if (own := rights.get(asker)) is not None:
                    allowed |= own.allowed
                    denied |= own.denied
        return allowed & ~denied if has_acls else self._without_acl

    def _of_resource(self, resource_type: int, name: str) -> Iterator[dict[Asker, Rights]]:
        """The rights of each pattern that a resource has."""
        for literal in (name, WILDCARD):
            rights = self._rights.get(Pattern(resource_type, literal, PatternType.LITERAL))
            if rights is not None:
                yield rights
        prefixed = self._prefixed[resource_type]
        for length in self._lengths[resource_type]:
            if length > len(name):
                break
            rights = prefixed.get(name[:length])
            if rights is not None:
                yield rights

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there may be a resource of this type on which `principal` may perform the operation, which
        is none that others imply (authorizeByResourceType).
        """
        question = principal, host, operation, resource_type
        known = self._known_any.get(question)
        if known is None:
            known = self._decide_any(*question)
            if len(self._known_any) >= MOST_KNOWN:
                self._known_any.clear()
            self._known_any[question] = known
        return known

    def _decide_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        if self.allows(principal, host, operation, resource_type, "hardcode"):  # Kafka tries this very name
            return True
        allowed: list[Pattern] = []
        denied: set[Pattern] = set()
        askers = _askers(principal, host)
        for pattern, rights in self._rights.items():
            if pattern.resource_type != resource_type:
                continue
            said = [own for asker in askers if (own := rights.get(asker)) is not None]
            if any(own.denied >> operation & 1 for own in said):
                denied.add(pattern)
            if any(own.allowed >> operation & 1 for own in said):
                allowed.append(pattern)
        everything = Pattern(resource_type, WILDCARD, PatternType.LITERAL)
        if everything in denied or everything in allowed:
            return everything not in denied
        return any(not self._is_denied(pattern, denied) for pattern in allowed)

    def _is_denied(self, pattern: Pattern, denied: Collection[Pattern]) -> bool:
        """Whether all resources of a pattern are denied."""
        resource_type, name, _ = pattern
        return pattern in denied or any(
            Pattern(resource_type, name[:length], PatternType.PREFIXED) in denied
            for length in self._lengths[resource_type]
            if length <= len(name)
        )

    # ---- the ACLs

    def add(self, acl: Acl) -> None:
        """Put a new ACL into force."""
        pattern = acl.pattern
        if pattern not in self._rights:
            self._rights[pattern] = {}
            if pattern.pattern_type == PatternType.PREFIXED:
                self._prefixed[pattern.resource_type][pattern.name] = self._rights[pattern]
                self._count(pattern, 1)
        rights = self._rights[pattern].setdefault((acl.principal, acl.host), Rights())
        rights.acls.add(acl)
        rights.sum_up()
        self._forget()

    def remove(self, acl: Acl) -> None:
        """Let an ACL that was added be none."""
        pattern, asker = acl.pattern, (acl.principal, acl.host)
        rights = self._rights[pattern][asker]
        rights.acls.remove(acl)
        rights.sum_up()
        if not rights.acls:
            del self._rights[pattern][asker]
        if not self._rights[pattern]:
            del self._rights[pattern]
            if pattern.pattern_type == PatternType.PREFIXED:
                del self._prefixed[pattern.resource_type][pattern.name]
                self._count(pattern, -1)
        self._forget()

    def _count(self, pattern: Pattern, change: int) -> None:
        counts, lengths = self._prefixes[pattern.resource_type], self._lengths[pattern.resource_type]
        length = len(pattern.name)
        counts[length] += change
        if change > 0 and counts[length] == 1:
            insort(lengths, length)
        elif not counts[length]:
            lengths.remove(length)

    def _forget(self) -> None:
        self.version += 1
        self._known.clear()
        self._known_any.clear()


def _askers(principal: str, host: str) -> tuple[Asker, ...]:
    """Those to whom an ACL may be addressed so that it counts for a principal at a host."""
    return (principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)
