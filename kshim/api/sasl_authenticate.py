"""SaslAuthenticate (36): refuse a token at a listener without SASL, or from a client that has already
authenticated. The answer is Apache Kafka's.
"""

from __future__ import annotations

from kshim.answering.views import AnyView
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

TOO_LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's own words. To Kafka, a connection without SASL is authenticated as User:ANONYMOUS."""


def sasl_authenticate(
    broker: AnyView, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse the token. The SaslHandshake before it has already logged a warning."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE)
