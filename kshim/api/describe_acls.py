"""DescribeAcls (29): there is no authorizer, and so no access control list."""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.acl_codes import require_known
from schemas.error_code import ErrorCode
from schemas.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(
    broker: Broker, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Refuse as Kafka does without an authorizer; tools know this error, and report it as such."""
    require_known(
        request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
    )
    message = "No Authorizer is configured on the broker"
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
