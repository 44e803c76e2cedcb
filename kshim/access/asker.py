"""Asks the authorizer about one request, and logs what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.callers.principal import ANONYMOUS
from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from kshim.cluster.decisions import Decisions
from kshim.turns.slices import in_slices
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from kshim.fetching.sessions import FetchSessions

logger = logging.getLogger(__name__)

T = TypeVar("T")

DIVIDE_US = 2
"""The time that an entry costs besides the authorizer's decision."""
MOST_LOGGED, LONGEST_LOGGED = 3, 100
"""Most names in a line of the log, and most characters of each."""
ERRORS: Final = {
    AclResource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for a client that may not use a resource of a type."""

Resource = tuple[AclResource, str]
"""The type and the name of a resource."""
Divided: TypeAlias = tuple[Sequence[T], Sequence[T]]
"""The entries that the caller may use, and those that it may not use."""


class RulesView(ClusterView, Protocol):
    """The parts of a broker that rules use."""

    @property
    def authorizer(self) -> Decisions | None: ...
    @property
    def fetch_sessions(self) -> FetchSessions: ...


class Asker:
    """The caller of one request."""

    def __init__(
        self, broker: RulesView, context: RequestContext, api_key: ApiKey, authorizer: Decisions
    ) -> None:
        self.broker = broker
        self.context = context
        self.api_key = api_key
        self._authorizer = authorizer
        self._principal = str(context.client.principal if context.client else ANONYMOUS)
        self._host = context.client_host.removeprefix("/")

    @property
    def version(self) -> int:
        """The version of the API in the request."""
        return self.context.api_version

    @property
    def rights(self) -> Hashable:
        """A value that changes whenever the caller's rights may have changed."""
        return self._principal, self._host, self._authorizer.version

    def may(
        self,
        operation: AclOperation,
        resource: AclResource,
        name: str = CLUSTER_NAME,
        *,
        quietly: bool = False,
    ) -> bool:
        """True if the caller may do the operation. quietly: do not log a "no", because it refuses nothing."""
        allowed = self._authorizer.allows(self._principal, self._host, operation, resource, name)
        if not allowed and not quietly:
            self._log_refusal(operation, resource, (name,))
        return allowed

    async def may_each(
        self, operation: AclOperation, resource: AclResource, names: Sequence[str], *, quietly: bool = False
    ) -> set[str]:
        """Return the names to which the caller may do the operation. Many names are checked in slices."""
        who, host, allows = self._principal, self._host, self._authorizer.allows

        def check(name: str) -> bool:
            return allows(who, host, operation, resource, name)

        cost_us = partial(self._authorizer.cost_us, resource)
        checked = await in_slices(self.broker.rounds, self.context.turn, names, check, cost_us)
        allowed = {name for name, is_allowed in zip(names, checked, strict=True) if is_allowed}
        if len(allowed) < len(names) and not quietly:
            denied = (name for name, is_allowed in zip(names, checked, strict=True) if not is_allowed)
            self._log_refusal(operation, resource, list(denied))
        return allowed

    async def divide(
        self,
        operation: AclOperation,
        entries: Sequence[T],
        resource_of: Callable[[T], Resource | None],
    ) -> Divided[T]:
        """Divide entries into those that the caller may use for the operation, and the others.

        Many entries are checked in slices. resource_of: returns the resource of an entry; None if the caller
        needs no right for the entry.
        """
        who, host, allows = self._principal, self._host, self._authorizer.allows
        known: dict[Resource, bool] = {}

        denied: dict[AclResource, list[str]] = {}

        def may(entry: T) -> bool:
            resource = resource_of(entry)
            if resource is None:
                return True
            allowed = known.get(resource)
            if allowed is None:
                allowed = known[resource] = allows(who, host, operation, *resource)
                if not allowed:
                    kind, name = resource
                    denied.setdefault(kind, []).append(name)
            return allowed

        def cost_us(entry: T) -> int:
            resource = resource_of(entry)
            return DIVIDE_US + (0 if resource is None else self._authorizer.cost_us(*resource))

        allowed = await in_slices(self.broker.rounds, self.context.turn, entries, may, cost_us)
        if not denied:
            return entries, ()
        for kind, names in denied.items():
            self._log_refusal(operation, kind, names)
        refused = [not may for may in allowed]
        return list(compress(entries, allowed)), list(compress(entries, refused))

    def may_any(self, operation: AclOperation, resource: AclResource) -> bool:
        """True if the caller may do the operation to at least one resource of the type, existing or not."""
        return self._authorizer.allows_any(self._principal, self._host, operation, resource)

    def operations(self, resource: AclResource, name: str = CLUSTER_NAME) -> int:
        """All operations that the caller may do to a resource, as bits."""
        return self._authorizer.operations(self._principal, self._host, resource, name)

    def _log_refusal(self, operation: AclOperation, resource: AclResource, names: Collection[str]) -> None:
        """Log that the caller is refused an operation.

        The same refusal to one address is logged only once.
        """
        first = tuple(name[:LONGEST_LOGGED] for name, _ in zip(names, range(MOST_LOGGED), strict=False))
        more = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
        cause = self._principal, self._host, self.api_key, operation, resource, first
        logger.log(
            self.broker.once.level(cause),
            "%s is denied %s on %s %s%s from host %s, for %s",
            self._principal,
            operation.name,
            resource.name,
            ", ".join(first),
            more,
            self._host,
            self.api_key.title,
        )
