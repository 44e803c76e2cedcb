"""CreateAcls (30): there is no authorizer that a rule could be given to."""

from __future__ import annotations

from kshim.context import Broker, RequestContext
from schemas.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from schemas.error_code import ErrorCode

REFUSED = AclCreationResult(
    error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
)


def create_acls(broker: Broker, context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Each rule is refused."""
    return CreateAclsResponse(results=(REFUSED,) * len(request.creations))
