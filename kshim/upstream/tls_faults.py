"""Faults of TLS with an upstream broker, as the reason for which its connection is closed."""

from __future__ import annotations

import ssl

from kshim.client.tls_faults import tls_fault
from kshim.configs.upstream import PREFIX
from kshim.upstream.lost import BrokerRefused


def refused(error: ssl.SSLError) -> BrokerRefused:
    """Return the reason for which the connection is closed."""
    return BrokerRefused(tls_fault(error, PREFIX))
