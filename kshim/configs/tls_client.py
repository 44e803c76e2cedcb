"""What the properties of TLS come to for a client, which may have a key store and a trust store."""

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
    """Nothing is read from disk yet."""

    keys: Store | None
    """None if it has no certificate."""
    trusted: Store | None
    """None stands for the system's."""
    checks_host: bool
    """Whether a server's certificate has to name the host that was connected to."""
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    """Empty for all."""


def tls_client_settings(find: Callable[[str], str | None]) -> TlsClientSettings:
    """The settings of a client. find: the text of a property that was set. Raises WrongTls."""
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
