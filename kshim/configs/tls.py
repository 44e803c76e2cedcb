"""The properties of TLS, and a listener's settings made from them: key store, trust store and rules.

Each property may be set for all listeners, or with the prefix listener.name.LISTENER. for one (KIP-103). This
module reads nothing from disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kshim.configs.listeners import ListenerConfig, override
from kshim.configs.property import property_field
from kshim.configs.values import Secret

PROTOCOLS = ("TLSv1.2", "TLSv1.3")
_NO_MORE = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Old protocols, which are accepted in a list and ignored, because nobody should use them."""
_STORES = ("PEM", "PKCS12", "JKS")


class WrongTls(ValueError):
    """A property of TLS has an unusable value. str() says which values are right."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")


class ClientAuth(StrEnum):
    """The demand of a listener for a client's certificate."""

    NONE = "none"
    """The listener asks for no certificate."""
    REQUESTED = "requested"
    """A client may connect without one, but not with an invalid one."""
    REQUIRED = "required"


def _of(parse: Callable[[str], object]) -> Callable[[str], str]:
    """A parser that returns the text itself, if `parse` accepts it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _store_type(text: str) -> str:
    if text.upper() not in _STORES:
        raise ValueError(f"expected {' or '.join(_STORES)}")
    return text.upper()


def _client_auth(text: str) -> ClientAuth:
    try:
        return ClientAuth(text.lower())
    except ValueError:
        raise ValueError(f"expected {' or '.join(ClientAuth)}") from None


def parse_protocols(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = tuple(name for name in PROTOCOLS if name in names)
    if not found or not {*PROTOCOLS, *_NO_MORE}.issuperset(names):
        raise ValueError(f"expected {' or '.join(PROTOCOLS)}, or both")
    return found


def parse_cipher_suites(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if wrong := [name for name in names if not re.fullmatch(r"TLS_[A-Z0-9_]+", name)]:
        raise ValueError(f"expected names such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, but not {wrong[0]}")
    return names


def _rules(text: str) -> str:
    from kshim.configs.principal_rules import parse_rules

    return _of(parse_rules)(text)


@dataclass(frozen=True, slots=True, kw_only=True, init=False, repr=False, eq=False)
class TlsProperties:
    """The table of properties, a base of `Config`. It has no methods of a dataclass: to make them takes time
    at the import, and only `Config` is instantiated.
    """

    ssl_keystore_location: str = property_field(
        "", str, "File with a listener's certificate and key, in PEM or PKCS12."
    )
    ssl_keystore_password: Secret = property_field(Secret(), Secret, "Password of a PKCS12 key store.")
    ssl_keystore_type: str = property_field(
        "JKS",
        _of(_store_type),
        "PEM or PKCS12. kshim detects the type from the content, whatever is set.",
    )
    ssl_keystore_certificate_chain: Secret = property_field(
        Secret(),
        Secret,
        "A certificate and those of its issuers, as PEM text, in place of ssl.keystore.location.",
    )
    ssl_keystore_key: Secret = property_field(
        Secret(), Secret, "The private key of ssl.keystore.certificate.chain, as PEM text."
    )
    ssl_key_password: Secret = property_field(Secret(), Secret, "Password of the private key.")
    ssl_truststore_location: str = property_field(
        "",
        str,
        "File with the certificates of the authorities that issue clients' certificates, in PEM or "
        "PKCS12. Without it, the system's authorities are trusted.",
    )
    ssl_truststore_password: Secret = property_field(Secret(), Secret, "Password of a PKCS12 trust store.")
    ssl_truststore_type: str = property_field(
        "JKS", _of(_store_type), "PEM or PKCS12. kshim detects the type from the content, whatever is set."
    )
    ssl_truststore_certificates: Secret = property_field(
        Secret(), Secret, "The certificates to trust, as PEM text, in place of ssl.truststore.location."
    )
    ssl_client_auth: str = property_field(
        "none",
        _of(_client_auth),
        "none: a listener asks for no client certificate. requested: it asks, but clients without one may "
        "connect. required: clients need one.",
    )
    ssl_enabled_protocols: str = property_field(
        "TLSv1.2,TLSv1.3", _of(parse_protocols), "The TLS versions that a listener accepts."
    )
    ssl_cipher_suites: str = property_field(
        "",
        _of(parse_cipher_suites),
        "The cipher suites that a listener accepts, by their IANA names; if empty, all secure ones. "
        "Single suites of TLS 1.3 cannot be switched off.",
    )
    ssl_principal_mapping_rules: str = property_field(
        "DEFAULT",
        _rules,
        "Rules that map the name in a client's certificate to its principal: "
        "RULE:pattern/replacement/[LU] or DEFAULT, comma-separated. The first rule that matches counts.",
    )


_NAMES = frozenset(name.replace("_", ".") for name in TlsProperties.__dataclass_fields__)
_OVERRIDE = re.compile(r"listener\.name\.([^.]+)\.(ssl\..*)")


def is_override(name: str) -> bool:
    """True for a property of TLS with the prefix of a listener."""
    found = _OVERRIDE.fullmatch(name)
    return found is not None and found[2] in _NAMES


def without_effect(given: Iterable[str], listeners: Sequence[ListenerConfig]) -> list[str]:
    """A warning for each property of TLS that no listener uses. given: the names that were set."""
    with_tls = {listener.name.lower() for listener in listeners if listener.protocol.is_tls}
    warnings = []
    for name in given:
        found = _OVERRIDE.fullmatch(name)
        if found is not None and found[2] in _NAMES and found[1] not in with_tls:
            warnings.append(f"{name} has no effect here: no listener with TLS is named {found[1].upper()}")
        elif name in _NAMES and not with_tls:
            warnings.append(f"{name} has no effect here: no listener has TLS")
    return warnings


class Store(NamedTuple):
    """A key store or a trust store: a file, or PEM text."""

    property: str
    """The property that names the store, for errors."""
    location: str
    password: Secret
    pem: str
    key_pem: str = ""
    """The private key; empty if it is in the file at `location`."""
    key_password: Secret = Secret()


class TlsSettings(NamedTuple):
    """The settings of one listener with TLS."""

    listener_name: str
    keys: Store
    trusted: Store | None
    """None stands for the system's trusted certificates."""
    client_auth: ClientAuth
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    """Empty for all good ones."""
    mapping_rules: str


Texts = Callable[[str], str]
"""Takes the name of a property; returns its text, set or default. Raises WrongTls."""


def client_auth_of(given: Mapping[str, str], listener: ListenerConfig) -> ClientAuth:
    """Return whether a listener with TLS asks clients for certificates. Raises WrongTls.

    given: the properties that were set.
    """
    name = "ssl.client.auth"
    if not listener.protocol.is_sasl:
        return _client_auth(texts_of(lambda each: override(given, listener.name, each))(name))
    # SASL names the clients, so only the property with the listener's prefix counts (KIP-684)
    return _client_auth(given.get(f"listener.name.{listener.name.lower()}.{name}", "none"))


def tls_settings(given: Mapping[str, str], listener: ListenerConfig) -> TlsSettings:
    """The settings of a listener. given: the properties that were set. Raises WrongTls."""

    text = texts_of(lambda name: override(given, listener.name, name))
    return TlsSettings(
        listener_name=listener.name,
        keys=_listener_keys(text),
        trusted=trusted_of(text),
        client_auth=client_auth_of(given, listener),
        protocols=parse_protocols(text("ssl.enabled.protocols")),
        cipher_suites=parse_cipher_suites(text("ssl.cipher.suites")),
        mapping_rules=text("ssl.principal.mapping.rules"),
    )


def texts_of(find: Callable[[str], str | None]) -> Texts:
    """A function that returns the text of a property, checked, or its default.

    find: returns the text of a property that was set, else None.
    """

    def text(name: str) -> str:
        found = find(name)
        field_ = TlsProperties.__dataclass_fields__[name.replace(".", "_")]
        if found is None:
            return str(field_.default)
        try:
            field_.metadata["parse"](found)
        except ValueError as error:
            raise WrongTls(name, str(error)) from None
        return found

    return text


def _listener_keys(text: Texts) -> Store:
    keys = keys_of(text)
    if keys is None:
        why = "expected it, or ssl.keystore.certificate.chain; `kshim certificates` makes some for tests"
        raise WrongTls("ssl.keystore.location", why)
    return keys


def keys_of(text: Texts) -> Store | None:
    """The key store; None if none is set. Raises WrongTls."""
    text("ssl.keystore.type")  # only checked: the store's content shows its type
    location, chain = text("ssl.keystore.location"), text("ssl.keystore.certificate.chain")
    key, password = text("ssl.keystore.key"), Secret(text("ssl.key.password"))
    if location and (chain or key):
        raise WrongTls("ssl.keystore.location", "expected it alone, without certificate.chain and key")
    if location:
        store_password = Secret(text("ssl.keystore.password"))
        return Store("ssl.keystore.location", location, store_password, "", key_password=password)
    if not chain:
        if key:
            raise WrongTls("ssl.keystore.certificate.chain", "expected the certificate of ssl.keystore.key")
        return None
    if not key:
        raise WrongTls("ssl.keystore.key", "expected the private key of ssl.keystore.certificate.chain")
    return Store("ssl.keystore.certificate.chain", "", Secret(), chain, key, password)


def trusted_of(text: Texts) -> Store | None:
    """The trust store; None stands for the system's trusted certificates. Raises WrongTls."""
    text("ssl.truststore.type")
    location, pem = text("ssl.truststore.location"), text("ssl.truststore.certificates")
    if location and pem:
        raise WrongTls("ssl.truststore.location", "expected it alone, without ssl.truststore.certificates")
    if pem:
        return Store("ssl.truststore.certificates", "", Secret(), pem)
    if not location:
        return None
    return Store("ssl.truststore.location", location, Secret(text("ssl.truststore.password")), "")
