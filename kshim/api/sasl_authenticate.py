"""SaslAuthenticate (36): a token for a listener that has no SASL, or of who has authenticated, answered as
Apache Kafka does.
"""

from __future__ import annotations

from kshim.answering import Broker
from kshim.callers import RequestContext
from schemas.error_code import ErrorCode
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

TOO_LATE = "SaslAuthenticate request received after successful authentication"
"""Kafka's own words: every connection of a plain listener is authenticated, as User:ANONYMOUS."""


def sasl_authenticate(
    broker: Broker, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse the token; SaslHandshake, which comes before it, has warned already."""
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE)
