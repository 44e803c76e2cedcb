"""SaslHandshake (17): a client chooses how it authenticates (KIP-43).

v1 means that the client goes on with SaslAuthenticate, and not with bare tokens (KIP-152).
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import array, int16, string


@message(api_key=ApiKey.SASL_HANDSHAKE, versions=range(0, 2), flexible=None)
class SaslHandshakeRequest:
    mechanism: str = field(string)


@message(api_key=ApiKey.SASL_HANDSHAKE, versions=range(0, 2), flexible=None)
class SaslHandshakeResponse:
    error_code: int = field(int16)
    mechanisms: tuple[str, ...] = field(array(string))
