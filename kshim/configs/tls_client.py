"""The settings of TLS for a client, made from its properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kshim.configs.tls import (
    Store,
    WrongTls,
    keys_of,
    parse_cipher_suites,
    parse_protocols,
    texts_of,
    trusted_of,
)

CHECK_HOST: Final = "ssl.endpoint.identification.algorithm"


@dataclass(frozen=True, slots=True)
class TlsClientSettings:
    """The settings of a client with TLS. The stores are not read yet."""

    keys: Store | None
    """None if the client has no certificate."""
    trusted: Store | None
    """None stands for the system's trusted certificates."""
    checks_host: bool
    """True if a server's certificate must name the host that the client connected to."""
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    """Empty for all good ones."""


def tls_client_settings(find: Callable[[str], str | None]) -> TlsClientSettings:
    """The settings of a client. find: returns the text of a property that was set, else None. Raises
    WrongTls.
    """
    text = texts_of(find)
    found = find(CHECK_HOST)
    algorithm = "https" if found is None else found.strip()
    if algorithm.lower() not in ("https", ""):
        raise WrongTls(CHECK_HOST, "expected https, or nothing for no check")
    return TlsClientSettings(
        keys=keys_of(text),
        trusted=trusted_of(text),
        checks_host=bool(algorithm),
        protocols=parse_protocols(text("ssl.enabled.protocols")),
        cipher_suites=parse_cipher_suites(text("ssl.cipher.suites")),
    )
