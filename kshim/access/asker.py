"""Who asks for what: the questions of one request to the authorizer, and what the log says of its answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final

from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from kshim.cluster.authorizer import Authorizer
from kshim.requests import Broker, RequestContext
from kshim.requests.later import Later, then
from kshim.requests.principal import ANONYMOUS
from kshim.requests.slices import in_slices
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode

logger = logging.getLogger(__name__)

DIVIDE_US = 2
"""What an entry costs besides the decision."""
MOST_TOLD, LONGEST_TOLD = 3, 100
"""How many names a line of the log has, and how many characters of each."""
ERRORS: Final = {
    AclResource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""How a client is told that it may not use a resource."""

Resource = tuple[AclResource, str]
"""What is asked for: its type, and its name."""
Divided = tuple[Sequence[Any], Sequence[Any]]
"""The entries that the caller may use, and those it may not."""


class Asker:
    """The caller of one request."""

    def __init__(
        self, broker: Broker, context: RequestContext, api_key: ApiKey, authorizer: Authorizer
    ) -> None:
        self.broker = broker
        self.context = context
        self.api_key = api_key
        self._authorizer = authorizer
        self._principal = str(context.client.principal if context.client else ANONYMOUS)
        self._host = context.client_host.removeprefix("/")

    @property
    def version(self) -> int:
        """Of the API."""
        return self.context.api_version

    @property
    def rights(self) -> Hashable:
        """Stays the same as long as the caller may do the same."""
        return self._principal, self._host, self._authorizer.version

    def may(
        self,
        operation: AclOperation,
        resource: AclResource,
        name: str = CLUSTER_NAME,
        *,
        quietly: bool = False,
    ) -> bool:
        """Whether the caller may do that. quietly: nothing is refused if not, so the log need not say it."""
        allowed = self._authorizer.allows(self._principal, self._host, operation, resource, name)
        if not allowed and not quietly:
            self._tell(operation, resource, (name,))
        return allowed

    def may_each(
        self, operation: AclOperation, resource: AclResource, names: Sequence[str], *, quietly: bool = False
    ) -> Later[set[str]]:
        """Those of the names to which the caller may do that, in slices if they are many."""
        who, host, allows = self._principal, self._host, self._authorizer.allows

        def check(name: str) -> bool:
            return allows(who, host, operation, resource, name)

        def sort_out(checked: list[bool]) -> set[str]:
            allowed = {name for name, is_allowed in zip(names, checked, strict=True) if is_allowed}
            if len(allowed) < len(names) and not quietly:
                denied = (name for name, is_allowed in zip(names, checked, strict=True) if not is_allowed)
                self._tell(operation, resource, list(denied))
            return allowed

        cost_us = partial(self._authorizer.cost_us, resource)
        return then(in_slices(self.broker, self.context, names, check, cost_us), sort_out)

    def divide(
        self,
        operation: AclOperation,
        entries: Sequence[Any],
        resource_of: Callable[[Any], Resource | None],
    ) -> Later[Divided]:
        """The entries that the caller may use so, and the others, in slices if they are many.

        resource_of: what an entry is about; None for one that is not to be asked for.
        """
        who, host, allows = self._principal, self._host, self._authorizer.allows
        known: dict[Resource, bool] = {}

        denied: dict[AclResource, list[str]] = {}

        def may(entry: Any) -> bool:
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

        def cost_us(entry: Any) -> int:
            resource = resource_of(entry)
            return DIVIDE_US + (0 if resource is None else self._authorizer.cost_us(*resource))

        def divided(allowed: list[bool]) -> Divided:
            if not denied:
                return entries, ()
            for kind, names in denied.items():
                self._tell(operation, kind, names)
            refused = [not may for may in allowed]
            return list(compress(entries, allowed)), list(compress(entries, refused))

        return then(in_slices(self.broker, self.context, entries, may, cost_us), divided)

    def may_any(self, operation: AclOperation, resource: AclResource) -> bool:
        """Whether there may be a resource to which the caller may do that."""
        return self._authorizer.allows_any(self._principal, self._host, operation, resource)

    def operations(self, resource: AclResource, name: str = CLUSTER_NAME) -> int:
        """The bits of all that the caller may do with a resource."""
        return self._authorizer.operations(self._principal, self._host, resource, name)

    def _tell(self, operation: AclOperation, resource: AclResource, names: Collection[str]) -> None:
        """Say in the log who is refused what, once for the same of an address."""
        first = tuple(name[:LONGEST_TOLD] for name, _ in zip(names, range(MOST_TOLD), strict=False))
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
