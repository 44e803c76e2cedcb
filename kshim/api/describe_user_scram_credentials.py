"""DescribeUserScramCredentials (50): no user has a password here (KIP-554)."""

from __future__ import annotations

from collections import Counter

from kshim.requests import Broker, RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    broker: Broker, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """No users, if all are asked for; RESOURCE_NOT_FOUND for each one that is named."""
    times = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(results=tuple(_result(user, n) for user, n in times.items()))


def _result(user: str, times: int) -> DescribeUserScramCredentialsResult:
    error = ErrorCode.RESOURCE_NOT_FOUND
    message = f"Attempt to describe a user credential that does not exist: {user}"
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message)
