"""Decides by access control lists which operations are allowed, as Kafka's StandardAuthorizer does.

Pure. A decision is the set of all operations that a principal may perform on a resource from a host, as the
bits of KIP-430. It takes a few look-ups, however many ACLs there are: one for the resource's name, one for
`*`, and one for each length of a prefixed pattern. Each look-up gives two masks of operations, allowed and
denied. Prefixes of many different lengths make a decision slower: `cost_us` estimates its time.
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
"""Most decisions that are cached."""
LONGEST_KNOWN = 500
"""A decision about a name with more characters is not cached."""

DECISION_US = 5
PREFIX_NS, CHARACTER_NS = 250, 1
"""Additional time of a decision: for each length of a prefix, and for each character that is hashed."""

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
"""An allowed operation allows the implied one, too. A denied operation does not deny the implied one."""

Asker = tuple[str, str]
"""A principal and a host. In an ACL each may be the wildcard: EVERYBODY, or WILDCARD."""


class Rights:
    """The ACLs of one pattern, principal and host, and the operations that they allow and deny."""

    __slots__ = ("acls", "allowed", "denied")

    def __init__(self) -> None:
        self.acls: set[Acl] = set()
        self.allowed = self.denied = 0
        """Bits of operations; `allowed` includes the implied ones."""

    def sum_up(self) -> None:
        self.allowed = self.denied = 0
        for acl in self.acls:
            operation = AclOperation(acl.operation)
            if acl.permission == Permission.ALLOW:
                self.allowed |= _OWN[operation] | _IMPLIED.get(operation, 0)
            else:
                self.denied |= _OWN[operation]


class Authorizer:
    """All ACLs, arranged for decisions."""

    def __init__(self, super_users: Collection[str] = (), *, allow_everyone: bool = False) -> None:
        """super_users: principals that may do everything. allow_everyone: if True, everybody may do
        everything with a resource that no ACL matches.
        """
        self.version = 0
        """Grows with each change of ACLs; a decision that is cached elsewhere counts for one version."""
        self._super_users = frozenset(super_users)
        self._without_acl = EVERYTHING if allow_everyone else 0
        self._rights: dict[Pattern, dict[Asker, Rights]] = {}
        self._prefixed: defaultdict[int, dict[str, dict[Asker, Rights]]] = defaultdict(dict)
        """The rights of prefixed patterns, which `_rights` has too, by resource type and name."""
        self._prefixes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """The number of prefixed patterns of each length, by resource type."""
        self._lengths: defaultdict[int, list[int]] = defaultdict(list)
        """The sorted lengths of prefixed patterns, by resource type."""
        self._known: dict[tuple[str, str, int, str], int] = {}
        self._known_any: dict[tuple[str, str, int, int], bool] = {}

    # ---- the decision

    def cost_us(self, resource_type: int, name: str) -> int:
        """The longest time that a decision about a resource may take, in microseconds."""
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
        """True if `principal` may perform one operation on a resource from `host`."""
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
        """The rights of each pattern that matches a resource."""
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
        """True if `principal` may perform the operation on some resource of this type, even one that does not
        exist yet (authorizeByResourceType). operation: not one that other operations imply.
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
        """True if a denied pattern covers all resources of `pattern`."""
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
        """Put an ACL that was added out of force."""
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
    """The four pairs of an ACL's principal and host that match `principal` at `host`, wildcards included."""
    return (principal, host), (principal, WILDCARD), (EVERYBODY, host), (EVERYBODY, WILDCARD)
