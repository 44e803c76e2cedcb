"""DescribeAcls (29): the ACLs that a filter finds, by their patterns (KIP-140)."""

from __future__ import annotations

from collections.abc import Iterable

from kshim.answering.acl_codes import new_filter
from kshim.answering.views import ClusterView
from kshim.callers import RequestContext
from kshim.cluster.acl import Acl, Pattern
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def describe_acls(
    broker: ClusterView, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Return the ACLs that match.

    Without an authorizer, refuse with SECURITY_DISABLED, which tools report.
    """
    wanted = new_filter(request)
    if broker.cluster.acls is None:
        message = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
    return _response(await broker.cluster.acls.find(wanted, Slices(broker.rounds, context.turn).spend))


def _response(acls: Iterable[Acl]) -> DescribeAclsResponse:
    by_pattern: dict[Pattern, list[Acl]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, []).append(acl)
    return DescribeAclsResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        resources=tuple(_resource(*each) for each in by_pattern.items()),
    )


def _resource(pattern: Pattern, acls: list[Acl]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=Mapped(_description, tuple(acls)),
    )


def _description(acl: Acl) -> AclDescription:
    return AclDescription(
        principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
    )
