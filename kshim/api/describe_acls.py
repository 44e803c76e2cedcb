"""DescribeAcls (29): there is no authorizer, and so no access control list."""

from __future__ import annotations

from kshim.context import Broker, RequestContext
from schemas.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from schemas.error_code import ErrorCode


def describe_acls(
    broker: Broker, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Everybody may do everything; tools know this error, and say so."""
    message = "No Authorizer is configured on the broker"
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
