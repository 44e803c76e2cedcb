"""Faults of TLS with an upstream broker, in words that name the setting to look at."""

from __future__ import annotations

import ssl
from typing import Final

from kshim.network.encrypted import reason_of
from kshim.upstream.lost import BrokerRefused

_CHECK: Final = "upstream.ssl.endpoint.identification.algorithm"
_WRONG_HOST: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


def refused(error: ssl.SSLError) -> BrokerRefused:
    """Return the reason for which the connection is closed."""
    return BrokerRefused(_said(error))


def _said(error: ssl.SSLError) -> str:
    reason = reason_of(error).rstrip(".")
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_HOST:
            return f"shows a certificate of another host: {reason} ({_CHECK})"
        return f"shows a certificate that is not trusted: {reason} (upstream.ssl.truststore.location)"
    if "alert" in reason:
        return f"does not go on with TLS: {reason} (upstream.ssl.keystore.location)"
    return f"speaks no TLS that is understood: {reason} (upstream.security.protocol)"
