"""SaslAuthenticate (36): one token of a client's authentication (KIP-152).

v1 session_lifetime_ms (KIP-368); v2 flexible.
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import bytes_, int16, int64, nullable_string


@message(api_key=ApiKey.SASL_AUTHENTICATE, versions=range(0, 3), flexible=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = field(bytes_, secret=True)


@message(api_key=ApiKey.SASL_AUTHENTICATE, versions=range(0, 3), flexible=2)
class SaslAuthenticateResponse:
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    auth_bytes: bytes = field(bytes_)
    session_lifetime_ms: int = field(int64, since=1)
