"""Faults of TLS with a broker, in words that name the setting to look at."""

from __future__ import annotations

import ssl
from typing import Final

from kshim.network.tls_context import reason_of

_CHECK: Final = "ssl.endpoint.identification.algorithm"
_WRONG_HOST: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


def tls_fault(error: ssl.SSLError, prefix: str = "") -> str:
    """Return a predicate; callers put the broker's name before it. prefix: stands before the names of
    properties.
    """
    reason = reason_of(error).rstrip(".")
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_HOST:
            return f"shows a certificate of another host: {reason} ({prefix}{_CHECK})"
        return f"shows a certificate that is not trusted: {reason} ({prefix}ssl.truststore.location)"
    if "alert" in reason:
        return f"does not go on with TLS: {reason} ({prefix}ssl.keystore.location)"
    return f"speaks no TLS that is understood: {reason} ({prefix}security.protocol)"
