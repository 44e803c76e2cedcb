"""What the upstream lets one client do, as far as it has said so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource

COUNTS_S: Final = 5.0
"""How long an answer of the upstream counts. So a right that is withdrawn ends after that time."""
EVERY_COUNTS_S: Final = 30.0
"""How long a list of all topics counts, unless topics are created."""
MOST_KEPT: Final = 1_000
"""From so many answers on, those that count no more are forgotten."""
DECISION_US: Final = 2


class Right(NamedTuple):
    """An operation on a resource."""

    operation: AclOperation
    resource: AclResource
    name: str = CLUSTER_NAME


EVERY_TOPIC: Final = Right(AclOperation.DESCRIBE, AclResource.TOPIC, "*")
"""Stands for the list of all topics that the client may describe. No topic has this name."""


class Rights:
    """Implements `kshim.cluster.decisions.Decisions` for the one client: what is not known is not allowed.

    An answer that counts no more is still used where nobody can ask again: while topics are searched.
    """

    def __init__(self, seconds: Callable[[], float], topics_version: Callable[[], int]) -> None:
        """topics_version: grows when topics are created."""
        self._seconds = seconds
        self._topics_version = topics_version
        self._answers: dict[Right, tuple[bool, float]] = {}
        """Whether the client has a right, and the time of the answer."""
        self._described: frozenset[str] | None = None
        self._described_at = (0.0, 0)
        """The time and the version of the list of topics."""
        self.version = object()
        """No decision counts for another client."""
        self.lacking: set[Right] = set()
        """The rights that were asked for and are not known, or not any more."""

    # ---- what is known

    @property
    def knows_topics(self) -> bool:
        """True if the client was ever asked for all topics that it may describe."""
        return self._described is not None

    def unknown(self, rights: Iterable[Right]) -> list[Right]:
        """Return the rights about which the upstream has not answered lately."""
        now_s = self._seconds()
        return [each for each in dict.fromkeys(rights) if not self._is_known(each, now_s)]

    def _is_known(self, right: Right, now_s: float) -> bool:
        if right == EVERY_TOPIC:
            at_s, version = self._described_at
            is_current = version == self._topics_version() and now_s - at_s < EVERY_COUNTS_S
            return self._described is not None and is_current
        answer = self._answers.get(right)
        return answer is not None and now_s - answer[1] < COUNTS_S

    def learn(self, right: Right, is_allowed: bool) -> None:
        """Take an answer of the upstream."""
        now_s = self._seconds()
        if len(self._answers) >= MOST_KEPT:
            self._answers = {
                each: answer for each, answer in self._answers.items() if now_s - answer[1] < COUNTS_S
            }
        self._answers[right] = is_allowed, now_s

    def learn_topics(self, names: Iterable[str], version: int) -> None:
        """Take the list of all topics that the client may describe. version: of the topics when it was asked
        for.
        """
        self._described, self._described_at = frozenset(names), (self._seconds(), version)

    # ---- decisions

    def cost_us(self, resource_type: int, name: str) -> int:
        """See `Decisions`."""
        return DECISION_US

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """See `Decisions`."""
        right = Right(AclOperation(operation), AclResource(resource_type), name)
        answer = self._answers.get(right)
        if answer is not None:
            is_allowed, at_s = answer
            if self._seconds() - at_s >= COUNTS_S:
                self.lacking.add(right)
            return is_allowed
        if self._described is not None and right == EVERY_TOPIC._replace(name=name):
            return name in self._described
        self.lacking.add(right)
        return False

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """See `Decisions`. Nothing that kshim answers asks for it."""
        return False

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """See `Decisions`."""
        asked = ASKED[AclResource(resource_type)]
        allowed = (each for each in asked if self.allows(principal, host, each, resource_type, name))
        return sum(1 << each for each in allowed)


ASKED: Final = {
    AclResource.GROUP: (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE),
    AclResource.CLUSTER: (AclOperation.DESCRIBE,),
    AclResource.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    AclResource.TRANSACTIONAL_ID: (AclOperation.WRITE,),
}
"""The operations that kshim asks for, by type of resource."""
