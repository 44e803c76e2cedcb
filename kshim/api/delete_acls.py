"""DeleteAcls (31): there is no authorizer that a rule could be taken from."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.acl_codes import require_known
from schemas.error_code import ErrorCode
from schemas.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse

REFUSED = DeleteAclsFilterResult(
    error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
)


def delete_acls(broker: Broker, context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Each filter is refused."""
    for wanted in request.filters:
        require_known(
            wanted.resource_type_filter,
            wanted.pattern_type_filter,
            wanted.operation,
            wanted.permission_type,
        )
    return DeleteAclsResponse(filter_results=(REFUSED,) * len(request.filters))
