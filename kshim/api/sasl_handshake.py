"""SaslHandshake (17): a client wants to authenticate, but no listener here has SASL.

The answer is that of Apache Kafka's plain listeners: ILLEGAL_SASL_STATE, at which a client says that its
mechanism is not enabled. Without an answer it would try again for ever.
"""

from __future__ import annotations

from kshim.requests import Broker, RequestContext
from kshim.requests.mistake import Mistake
from kshim.requests.warn import warn
from schemas.error_code import ErrorCode
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(
    broker: Broker, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Answer that no mechanism is enabled."""
    warn(broker, context, Mistake.SASL, mechanism=request.mechanism)
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
