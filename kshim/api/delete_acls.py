"""DeleteAcls (31): delete the ACLs that filters find (KIP-140)."""

from __future__ import annotations

from collections.abc import Iterable

from kshim.answering.acl_codes import new_filter
from kshim.answering.views import ClusterView
from kshim.callers import Refused, RequestContext
from kshim.cluster import Refusal
from kshim.cluster.acl import Acl
from kshim.cluster.acls import MOST_FOUND
from kshim.storage.interfaces import StorageError
from kshim.turns.slices import Slices
from schemas.error_code import ErrorCode
from schemas.mapped import Mapped
from schemas.message import TooManyElements
from schemas.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

REFUSED = Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
NOT_STORED = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The deletion could not be stored.")


async def delete_acls(
    broker: ClusterView, context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    """Answer each filter with the ACLs that it has deleted. The deletion is durable before the answer."""
    filters = [new_filter(each) for each in request.filters]
    if broker.cluster.acls is None:
        return _response([REFUSED] * len(filters))
    try:
        deleted = await broker.cluster.acls.delete(filters, Slices(broker.rounds, context.turn).spend)
    except StorageError:
        return _response([NOT_STORED] * len(filters))
    except TooManyElements:
        why = f"{context.sender}: DeleteAcls finds more than {MOST_FOUND} access control lists"
        raise Refused(why) from None
    return _response(deleted)


def _response(outcome: Iterable[list[Acl] | Refusal]) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=tuple(map(_result, outcome)))


def _result(outcome: list[Acl] | Refusal) -> DeleteAclsFilterResult:
    if isinstance(outcome, Refusal):
        return DeleteAclsFilterResult(error_code=outcome.error_code, error_message=outcome.message)
    return DeleteAclsFilterResult(
        error_code=ErrorCode.NONE, error_message=None, matching_acls=Mapped(_deleted, tuple(outcome))
    )


def _deleted(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=acl.pattern.resource_type,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
