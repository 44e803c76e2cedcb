"""SaslHandshake (17): refuse a client that wants to authenticate at a listener without SASL, or a second
time.

At a listener with SASL, the gate (`kshim/network/gate.py`) answers clients that authenticate; their requests
do not come here. The answer is Apache Kafka's: ILLEGAL_SASL_STATE. With it, a client reports that its
mechanism is not enabled. Without an answer, it would try again for ever.
"""

from __future__ import annotations

from kshim.answering.views import AnyView
from kshim.answering.warn import warn
from kshim.callers import RequestContext
from kshim.callers.mistake import Mistake
from kshim.configs.listeners import PLAIN, SecurityProtocol
from schemas.error_code import ErrorCode
from schemas.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(
    broker: AnyView, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Answer that no mechanism is enabled."""
    protocol = _protocol(broker, context)
    if not protocol.is_sasl:
        warn(broker, context, Mistake.SASL, mechanism=request.mechanism, protocol=protocol)
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def _protocol(broker: AnyView, context: RequestContext) -> SecurityProtocol:
    """The protocol of the listener that the client has connected to."""
    name = context.client.listener_name if context.client else PLAIN
    found = (each.protocol for each in broker.config.listener_configs if each.name == name)
    return next(found, SecurityProtocol.PLAINTEXT)
