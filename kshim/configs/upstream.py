"""The properties of the connection to an upstream: those of a Kafka client, with the prefix `upstream.`.

`PROPERTIES` is their table, and `upstream_security` makes settings from them. This module reads nothing from
disk. Faults name properties, never their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kshim.configs.config import Property
from kshim.configs.jaas import LoginModule, parse_jaas
from kshim.configs.listeners import ListenerConfig, SecurityProtocol
from kshim.configs.sasl import LOGIN_MODULES, MECHANISMS, OAUTHBEARER
from kshim.configs.tls import WrongTls
from kshim.configs.tls_client import CHECK_HOST, TlsClientSettings, tls_client_settings
from kshim.configs.values import Secret, boolean

PREFIX: Final = "upstream."
BOOTSTRAP: Final = "bootstrap.servers"
FILE: Final = "config.file"
PROTOCOL: Final = "security.protocol"
PASS_THROUGH: Final = "sasl.pass.through.enable"
MECHANISM: Final = "sasl.mechanism"
JAAS: Final = "sasl.jaas.config"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
URL_ENCODES: Final = "sasl.oauthbearer.header.urlencode"
_HANDLERS: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.client.callback.handler.class": (
        "OAuthBearerSaslClientCallbackHandler",
        "SaslClientCallbackHandler",
    ),
    "sasl.login.callback.handler.class": (
        *("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler"),
        "DefaultLoginCallbackHandler",
    ),
    "sasl.login.class": ("DefaultLogin", "OAuthBearerRefreshingLogin"),
}
"""Kafka's classes, by property. Each stands for code of kshim; another class could not be loaded."""


class WrongUpstreamProperty(ValueError):
    """A property of the upstream has an unusable value. str() names it, and says which values are right."""

    def __init__(self, text: str) -> None:
        """text: begins with the property's name without the prefix `upstream.`."""
        super().__init__(f"{PREFIX}{text}")


def _rows() -> dict[str, Property]:
    rows = {
        FILE: (
            "The file of --upstream-config, which sets this property; kshim reads the file again when it has "
            "changed.",
            "",
        ),
        PROTOCOL: (
            "Protocol of connections to the upstream: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
            "PLAINTEXT",
        ),
        MECHANISM: (
            f"Mechanism with which kshim authenticates at the upstream: {', '.join(MECHANISMS)}.",
            "",
        ),
        TOKEN_URL: ("URL at which kshim gets tokens for OAUTHBEARER, with a client id and secret.", ""),
        CLIENT_ID: ("Client id for the token URL; or clientId in upstream.sasl.jaas.config.", ""),
        SCOPE: ("Scope to ask for at the token URL; or scope in upstream.sasl.jaas.config.", ""),
        URL_ENCODES: (
            "If true, kshim URL-encodes the client id and secret for the token URL, as RFC 6749 says.",
            "false",
        ),
        CHECK_HOST: (
            "https: the certificates of the upstream's brokers must name the hosts to which kshim connects. "
            "Empty: kshim accepts any name.",
            "https",
        ),
        "ssl.keystore.location": (
            "File with kshim's certificate and key for the upstream, in PEM or PKCS12.",
            "",
        ),
        "ssl.keystore.type": (
            "PEM or PKCS12. kshim detects the type from the content, whatever is set.",
            "JKS",
        ),
        "ssl.truststore.location": (
            "File with the certificates of the authorities that issue the upstream's certificates, in PEM or "
            "PKCS12. Without it, the system's authorities are trusted.",
            "",
        ),
        "ssl.truststore.type": (
            "PEM or PKCS12. kshim detects the type from the content, whatever is set.",
            "JKS",
        ),
        "ssl.enabled.protocols": (
            "The TLS versions that kshim may use towards the upstream.",
            "TLSv1.2,TLSv1.3",
        ),
        "ssl.cipher.suites": (
            "The cipher suites that kshim may use towards the upstream, by their IANA names; if empty, all "
            "secure ones.",
            "",
        ),
        **{
            name: (f"{' or '.join(classes)}. kshim loads no class: it has code of its own for these.", "")
            for name, classes in _HANDLERS.items()
        },
    }
    secrets = {
        JAAS: "Login module of the mechanism with kshim's credentials, in the form that Kafka's clients use.",
        CLIENT_SECRET: "Client secret for the token URL; or clientSecret in upstream.sasl.jaas.config.",
        "ssl.keystore.password": "Password of a PKCS12 key store.",
        "ssl.keystore.certificate.chain": "kshim's certificate and its issuers', as PEM, instead of a file.",
        "ssl.keystore.key": "The private key of upstream.ssl.keystore.certificate.chain, as PEM text.",
        "ssl.key.password": "Password of the private key.",
        "ssl.truststore.password": "Password of a PKCS12 trust store.",
        "ssl.truststore.certificates": "The certificates to trust, as PEM text instead of a file.",
    }
    kafkas = {MECHANISM: "GSSAPI"}
    shown = (
        Property(PREFIX + name, default, kafkas.get(name, ""), doc, str, is_secret=False)
        for name, (doc, default) in rows.items()
    )
    hidden = (Property(PREFIX + name, "", "", doc, str, is_secret=True) for name, doc in secrets.items())
    return {row.name: row for row in sorted((*shown, *hidden), key=lambda row: row.name)}


PROPERTIES: Final = _rows()
"""The rows by name, with the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """The credentials with which kshim logs in to the upstream."""

    mechanism: str
    options: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    """The options of the login module."""
    token_url: str = ""
    """The URL that issues tokens; empty if kshim makes unsecured tokens itself."""
    client_id: str = ""
    client_secret: Secret = Secret()
    scope: str = ""
    url_encodes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSecurity:
    """The settings of a connection to the upstream."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsClientSettings | None = None
    login: LoginSettings | None = None


def upstream_security(given: Mapping[str, str]) -> UpstreamSecurity:
    """The settings of a connection. given: the properties that were set. Raises WrongUpstreamProperty."""

    def find(name: str) -> str | None:
        return given.get(PREFIX + name)

    protocol = _protocol(find(PROTOCOL))
    try:
        tls = tls_client_settings(find) if protocol.is_tls else None
    except WrongTls as error:
        raise WrongUpstreamProperty(str(error)) from None
    return UpstreamSecurity(protocol=protocol, tls=tls, login=_login(find) if protocol.is_sasl else None)


def check_pass_through(security: UpstreamSecurity, listeners: Iterable[ListenerConfig]) -> None:
    """Check that clients can authenticate at the upstream, and that none comes in without. Raises
    WrongUpstreamProperty.
    """
    if not security.protocol.is_sasl:
        expected = f"expected {PREFIX}{PROTOCOL} to be SASL_PLAINTEXT or SASL_SSL, too"
        raise WrongUpstreamProperty(f"{PASS_THROUGH}: {expected}")
    for listener in listeners:
        if not listener.protocol.is_sasl:
            expected = f"expected SASL at every listener, but {listener.name} has {listener.protocol}"
            raise WrongUpstreamProperty(f"{PASS_THROUGH}: {expected}")


def of_client(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Add the prefix to the properties of a client.properties file.

    Returns the properties that kshim uses, with the prefix, and the names of the others, without it.
    """
    known = {f"{PREFIX}{name}": text for name, text in properties.items()}
    of_use = {name: text for name, text in known.items() if name in PROPERTIES or name == PREFIX + BOOTSTRAP}
    return of_use, [name.removeprefix(PREFIX) for name in known if name not in of_use]


_Find = Callable[[str], str | None]


def _protocol(text: str | None) -> SecurityProtocol:
    try:
        return SecurityProtocol((text or SecurityProtocol.PLAINTEXT).strip().upper())
    except ValueError:
        raise WrongUpstreamProperty(f"{PROTOCOL}: expected {' or '.join(SecurityProtocol)}") from None


def _login(find: _Find) -> LoginSettings:
    mechanism = (find(MECHANISM) or "").strip()
    if mechanism not in MECHANISMS:
        raise WrongUpstreamProperty(f"{MECHANISM}: expected {' or '.join(MECHANISMS)}")
    for name, classes in _HANDLERS.items():
        text = find(name)
        if text and re.split(r"[.$]", text.strip())[-1] not in classes:
            raise WrongUpstreamProperty(f"{name}: expected {' or '.join(classes)}")
    url = (find(TOKEN_URL) or "").strip() if mechanism == OAUTHBEARER else ""
    options = _module(find, mechanism, is_needed=not url).options
    if mechanism != OAUTHBEARER:
        _check_credentials(options)
        return LoginSettings(mechanism=mechanism, options=options)
    return _of_tokens(find, url, options)


def _module(find: _Find, mechanism: str, *, is_needed: bool) -> LoginModule:
    class_name = LOGIN_MODULES[mechanism]
    text = find(JAAS)
    if not text:
        if not is_needed:
            return LoginModule("", {})
        raise WrongUpstreamProperty(f"{JAAS}: expected, for {mechanism}: {_EXAMPLES[class_name]}")
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise WrongUpstreamProperty(f"{JAAS}: {error}") from None
    if module.name.rpartition(".")[2] != class_name:
        raise WrongUpstreamProperty(f"{JAAS}: expected {class_name} as login module, for {mechanism}")
    return module


def _check_credentials(options: Mapping[str, Secret]) -> None:
    for name in ("username", "password"):
        if not options.get(name):
            raise WrongUpstreamProperty(f'{JAAS}: expected the option {name}="…"')


def _of_tokens(find: _Find, url: str, options: Mapping[str, Secret]) -> LoginSettings:
    """The settings of a login with OAUTHBEARER. Raises WrongUpstreamProperty.

    As in Kafka, credentials are properties (KIP-1139) or options of the login module (KIP-768).
    """
    if not url:
        principal = options.get("unsecuredLoginPrincipalClaimName") or "sub"
        if not options.get(f"unsecuredLoginStringClaim_{principal}"):
            option = f'unsecuredLoginStringClaim_{principal}="…"'
            raise WrongUpstreamProperty(f"{JAAS}: expected the option {option}, or {PREFIX}{TOKEN_URL}")
        return LoginSettings(mechanism=OAUTHBEARER, options=options)
    if not url.startswith(("https://", "http://")):
        raise WrongUpstreamProperty(f"{TOKEN_URL}: expected a URL that begins with https:// or http://")
    client_id = find(CLIENT_ID) or options.get("clientId", "")
    client_secret = Secret(find(CLIENT_SECRET) or options.get("clientSecret", ""))
    if not client_id or not client_secret:
        name, option = (CLIENT_SECRET, "clientSecret") if client_id else (CLIENT_ID, "clientId")
        raise WrongUpstreamProperty(f'{name}: expected it, or the option {option}="…" in upstream.{JAAS}')
    try:
        url_encodes = boolean((find(URL_ENCODES) or "false").strip())
    except ValueError as error:
        raise WrongUpstreamProperty(f"{URL_ENCODES}: {error}") from None
    return LoginSettings(
        mechanism=OAUTHBEARER,
        options=options,
        token_url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=find(SCOPE) or options.get("scope") or "",
        url_encodes=url_encodes,
    )


_MODULES: Final = "org.apache.kafka.common.security"
_EXAMPLES: Final[Mapping[str, str]] = {
    "PlainLoginModule": f'{_MODULES}.plain.PlainLoginModule required username="…" password="…";',
    "ScramLoginModule": f'{_MODULES}.scram.ScramLoginModule required username="…" password="…";',
    "OAuthBearerLoginModule": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="…";',
}
