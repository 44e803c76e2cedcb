"""CreateAcls (30): there is no authorizer that a rule could be given to."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.acl_codes import require_known
from schemas.error_code import ErrorCode
from schemas.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

REFUSED = AclCreationResult(
    error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
)


def create_acls(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Each rule is refused."""
    for rule in request.creations:
        require_known(rule.resource_type, rule.resource_pattern_type, rule.operation, rule.permission_type)
    return CreateAclsResponse(results=(REFUSED,) * len(request.creations))
