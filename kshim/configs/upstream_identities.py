"""The file of `upstream.identities.file`: with which credentials each client's requests go to the upstream.

    alice.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="alice" password="…";
    bob.sasl.jaas.config=…

Each line has the name of a client's principal, a dot, and a property of a Kafka client. All but the
credentials is as for kshim itself, and kshim's own credentials are never a client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.tls import ClientAuth, client_auth_of
from kshim.configs.upstream import (
    CLIENT_ID,
    CLIENT_SECRET,
    JAAS,
    MECHANISM,
    PASS_THROUGH,
    PREFIX,
    PROTOCOL,
    SCOPE,
    UpstreamSecurity,
    WrongUpstreamProperty,
    upstream_security,
)

FILE: Final = "identities.file"
OF_LOGIN: Final = (JAAS, CLIENT_ID, CLIENT_SECRET, SCOPE)
OF_CERTIFICATE: Final = (
    *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
    *("ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"),
)


def check_identities(security: UpstreamSecurity, *, passes_logins: bool) -> None:
    """Check that the upstream can tell clients apart by such a file. Raises WrongUpstreamProperty."""
    if passes_logins:
        raise WrongUpstreamProperty(f"{FILE}: expected {PREFIX}{PASS_THROUGH} to be false")
    if not (security.protocol.is_sasl or security.protocol.is_tls):
        raise WrongUpstreamProperty(
            f"{FILE}: expected {PREFIX}{PROTOCOL} to be SSL, SASL_PLAINTEXT or SASL_SSL"
        )


def without_login(given: Mapping[str, str], listeners: Iterable[ListenerConfig]) -> ListenerConfig | None:
    """Return a listener whose clients do not authenticate; None if there is none. Raises WrongTls."""
    for listener in listeners:
        protocol = listener.protocol
        is_ssl = protocol is SecurityProtocol.SSL
        by_certificate = is_ssl and client_auth_of(given, listener) is not ClientAuth.NONE
        if not (protocol.is_sasl or by_certificate):
            return listener
    return None


def identities(properties: Mapping[str, str], given: Mapping[str, str]) -> dict[str, UpstreamSecurity]:
    """Return the settings of each client's connections, by the name of its principal.

    properties: those of the file. given: the server's properties that were set. Raises WrongUpstreamProperty.
    """
    shared = upstream_security(given)
    owned = _owned(shared)
    by_name: dict[str, dict[str, str]] = {}
    for key, text in properties.items():
        name, of_client = _divided(key, owned)
        by_name.setdefault(name, {})[of_client] = text.strip()
    return {name: _security(name, own, given, shared) for name, own in by_name.items()}


def _owned(shared: UpstreamSecurity) -> tuple[str, ...]:
    """The properties that an identity may have."""
    login = (*OF_LOGIN, MECHANISM) if shared.protocol.is_sasl else ()
    return (*login, *(OF_CERTIFICATE if shared.protocol.is_tls else ()))


def _divided(key: str, owned: tuple[str, ...]) -> tuple[str, str]:
    """Divide "alice.sasl.jaas.config" into the name and the property."""
    for each in owned:
        name = key.removesuffix(f".{each}")
        if name and name != key:
            return name, each
    raise WrongUpstreamProperty(
        f"{FILE}: {key}: expected a name, a dot, and one of {', '.join(sorted(owned))}"
    )


def _security(
    name: str, own: Mapping[str, str], given: Mapping[str, str], shared: UpstreamSecurity
) -> UpstreamSecurity:
    own_certificate = not shared.protocol.is_sasl or any(each in OF_CERTIFICATE for each in own)
    of_kshim = {PREFIX + each for each in (*OF_LOGIN, *(OF_CERTIFICATE if own_certificate else ()))}
    merged = {key: text for key, text in given.items() if key not in of_kshim}
    merged |= {PREFIX + key: text for key, text in own.items()}
    try:
        security = upstream_security(merged)
    except WrongUpstreamProperty as error:
        raise WrongUpstreamProperty(f"{FILE}: {name}.{str(error).removeprefix(PREFIX)}") from None
    if not shared.protocol.is_sasl and (security.tls is None or security.tls.keys is None):
        raise WrongUpstreamProperty(f"{FILE}: expected {name}.ssl.keystore.location")
    return security
