"""SASL as Kafka configures it: each listener's mechanisms, users, and the length of its sessions.

A property may be set for one mechanism of one listener, for the listener, for the mechanism, or for all; the
most particular setting counts (`SaslTexts`). As in Kafka, the names of listener and mechanism are in small
letters: listener.name.external.scram-sha-256.connections.max.reauth.ms. A fault never shows the value of a
secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kshim.configs import java
from kshim.configs.jaas import LoginModule, parse_jaas
from kshim.configs.java import INT_MAX, LONG_MAX
from kshim.configs.values import Secret, integer

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
ENABLED: Final = "sasl.enabled.mechanisms"
JAAS: Final = "sasl.jaas.config"
MAX_REAUTH_MS: Final = "connections.max.reauth.ms"
MAX_RECEIVE_BYTES: Final = "sasl.server.max.receive.size"
FAILURE_DELAY_MS: Final = "connection.failed.authentication.delay.ms"
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
ANY_AUDIENCE: Final = "sasl.oauthbearer.allow.unverified.audience"
ANY_ISSUER: Final = "sasl.oauthbearer.allow.unverified.issuer"
SCOPE_CLAIM: Final = "sasl.oauthbearer.scope.claim.name"
SUB_CLAIM: Final = "sasl.oauthbearer.sub.claim.name"
CLOCK_SKEW_S: Final = "sasl.oauthbearer.clock.skew.seconds"
CALLBACK_HANDLER: Final = "sasl.server.callback.handler.class"
NAMES: Final = (
    *(ENABLED, JAAS, MAX_REAUTH_MS, MAX_RECEIVE_BYTES, JWKS_URL, AUDIENCE, ISSUER, SCOPE_CLAIM, SUB_CLAIM),
    *(CLOCK_SKEW_S, CALLBACK_HANDLER, ANY_AUDIENCE, ANY_ISSUER),
)
"""The properties that may be set for a single listener or mechanism."""
DEFAULTS: Final[Mapping[str, str]] = {
    MAX_REAUTH_MS: "0",
    MAX_RECEIVE_BYTES: "524288",
    SCOPE_CLAIM: "scope",
    SUB_CLAIM: "sub",
    CLOCK_SKEW_S: "30",
    ANY_AUDIENCE: "false",
    ANY_ISSUER: "false",
}
LOGIN_MODULES: Final[Mapping[str, str]] = {
    PLAIN: "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
}
"""The login module of each mechanism: the class in sasl.jaas.config, without its package."""
_CHECKS_SIGNATURES = "OAuthBearerValidatorCallbackHandler"
_HANDLERS: Final[Mapping[str, tuple[str, ...]]] = {
    PLAIN: ("PlainServerCallbackHandler",),
    "SCRAM-SHA-256": ("ScramServerCallbackHandler",),
    "SCRAM-SHA-512": ("ScramServerCallbackHandler",),
    OAUTHBEARER: (_CHECKS_SIGNATURES, "OAuthBearerUnsecuredValidatorCallbackHandler"),
}
"""Kafka's callback handlers, by mechanism. kshim does their work itself, and cannot load other classes."""
_OF_SASL = re.compile(
    rf"(listener\.name\.[^.]+\.)?(({'|'.join(MECHANISMS).lower()})\.)?({'|'.join(map(re.escape, NAMES))})"
)


class WrongSasl(ValueError):
    """A property of SASL has an unusable value. str() names it, and says which values are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """The requirements for a token (KIP-255, KIP-768)."""

    jwks_url: str = ""
    """The URL of the keys that sign tokens; empty if tokens are not signed."""
    audiences: tuple[str, ...] | None = None
    """None for any, as with the issuer."""
    issuer: str | None = None
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The settings of one listener with SASL."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    """The passwords of PLAIN's users, by name."""
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    """The time after which a client must log in again, by mechanism; 0 for never."""
    max_receive_bytes: int = int(DEFAULTS[MAX_RECEIVE_BYTES])
    """The largest request that a client may send before its login."""
    oauth: OAuthSettings = field(default_factory=OAuthSettings)


@dataclass(frozen=True, slots=True)
class SaslTexts:
    """Finds the properties of one listener."""

    properties: Mapping[str, str] = field(repr=False)
    listener_name: str

    def find(self, name: str, mechanism: str = "") -> tuple[str, str] | None:
        """The most particular name under which a property is set, and its text; None if it is not set."""
        listener, of_mechanism = f"listener.name.{self.listener_name}.".lower(), f"{mechanism}.".lower()
        prefixes = [f"{listener}{of_mechanism}", listener, of_mechanism, ""] if mechanism else [listener, ""]
        for prefix in prefixes:
            if (text := self.properties.get(prefix + name)) is not None:
                return prefix + name, text.strip()
        return None

    def text(self, name: str, mechanism: str = "") -> str:
        """The text of a property: the most particular setting, else the default."""
        found = self.find(name, mechanism)
        return DEFAULTS.get(name, "") if found is None else found[1]

    def integer(self, name: str, low: int, high: int, mechanism: str = "") -> int:
        """The value of a property that is an integer. Raises WrongSasl."""
        return self._parsed(name, integer(low, high), mechanism)

    def jaas(self, mechanism: str) -> LoginModule | None:
        """The login module of a mechanism; None if it is not set, or is set for another mechanism. Raises
        WrongSasl.
        """
        found = self.find(JAAS, mechanism)
        if found is None:
            return None
        try:
            module = parse_jaas(found[1])
        except ValueError as fault:
            raise WrongSasl(f"{found[0]}: {fault}") from None
        fits = module.name.rpartition(".")[2] == LOGIN_MODULES[mechanism]
        if not fits and found[0].endswith(f"{mechanism}.{JAAS}".lower()):
            raise WrongSasl(f"{found[0]}: expected {LOGIN_MODULES[mechanism]} as login module")
        return module if fits else None

    def _parsed(self, name: str, parse: Callable[[str], int], mechanism: str) -> int:
        found = self.find(name, mechanism)
        try:
            return parse(DEFAULTS[name] if found is None else found[1])
        except ValueError as fault:
            raise WrongSasl(f"{found[0] if found else name}: {fault}") from None


def is_of_sasl(name: str) -> bool:
    """True for a property of SASL, with or without the prefix of a listener or mechanism."""
    return _OF_SASL.fullmatch(name) is not None


def sasl_settings(properties: Mapping[str, str], listener_name: str) -> SaslSettings:
    """The settings of SASL at a listener. Raises WrongSasl."""
    texts = SaslTexts(properties, listener_name)
    mechanisms = _mechanisms(texts)
    for each in mechanisms:
        _check_handler(texts, each)
    return SaslSettings(
        mechanisms=mechanisms,
        passwords=_passwords(texts) if PLAIN in mechanisms else {},
        max_reauth_ms={each: texts.integer(MAX_REAUTH_MS, 0, LONG_MAX, each) for each in mechanisms},
        max_receive_bytes=texts.integer(MAX_RECEIVE_BYTES, 1, INT_MAX),
        oauth=_oauth(texts) if OAUTHBEARER in mechanisms else OAuthSettings(),
    )


def relayed_settings(properties: Mapping[str, str], listener_name: str) -> SaslSettings:
    """The settings of SASL at a listener whose clients authenticate at another server: it has the users. All
    mechanisms are enabled, unless some are named. Raises WrongSasl.
    """
    texts = SaslTexts(properties, listener_name)
    return SaslSettings(
        mechanisms=_mechanisms(texts) if texts.find(ENABLED) else MECHANISMS,
        max_receive_bytes=texts.integer(MAX_RECEIVE_BYTES, 1, INT_MAX),
    )


def _mechanisms(texts: SaslTexts) -> tuple[str, ...]:
    name, text = texts.find(ENABLED) or (ENABLED, "")
    mechanisms = tuple(dict.fromkeys(filter(None, java.items(text))))
    if not mechanisms or not set(mechanisms) <= set(MECHANISMS):
        some = f"expected one or some of {', '.join(MECHANISMS)}"
        raise WrongSasl(f"{name}={text}: {some} for listener {texts.listener_name}")
    return mechanisms


def _check_handler(texts: SaslTexts, mechanism: str) -> None:
    """Refuse every callback handler that kshim does not stand for, because it would decide which clients may
    log in. Raises WrongSasl.
    """
    found = texts.find(CALLBACK_HANDLER, mechanism)
    if found is None:
        return
    name, text = found
    handler = text.rpartition(".")[2]
    if handler not in _HANDLERS[mechanism]:
        raise WrongSasl(f"{name}={text}: expected {' or '.join(_HANDLERS[mechanism])} for {mechanism}")
    if handler == _CHECKS_SIGNATURES and not texts.text(JWKS_URL, mechanism):
        raise WrongSasl(f"{name}={text}: expected {JWKS_URL}, too")


def _passwords(texts: SaslTexts) -> dict[str, Secret]:
    module = texts.jaas(PLAIN)
    if module is None:
        name = f"listener.name.{texts.listener_name}.plain.{JAAS}".lower()
        raise WrongSasl(
            f"{name}: expected, as PLAIN is enabled: "
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD";'
        )
    return module.users()


def _expected(texts: SaslTexts, name: str, any_name: str) -> str | None:
    """The text of a property that signed tokens need; None if `any_name` allows any. Raises WrongSasl."""
    if texts.text(any_name, OAUTHBEARER).lower() == "true":
        return None
    text = texts.text(name, OAUTHBEARER)
    if not text.strip(" ,"):
        raise WrongSasl(f"{JWKS_URL}: expected {name}, too, or {any_name}=true")
    return text


def _oauth(texts: SaslTexts) -> OAuthSettings:
    """The requirements for tokens. As in Kafka, properties count for signed tokens, and options of the login
    module for unsecured ones. Raises WrongSasl.
    """
    url = texts.text(JWKS_URL, OAUTHBEARER)
    if url:
        audiences = _expected(texts, AUDIENCE, ANY_AUDIENCE)
        return OAuthSettings(
            jwks_url=url,
            audiences=None if audiences is None else tuple(filter(None, java.items(audiences))),
            issuer=_expected(texts, ISSUER, ANY_ISSUER),
            scope_claim=texts.text(SCOPE_CLAIM, OAUTHBEARER),
            principal_claim=texts.text(SUB_CLAIM, OAUTHBEARER),
            clock_skew_ms=1000 * texts.integer(CLOCK_SKEW_S, 0, INT_MAX, OAUTHBEARER),
        )
    module = texts.jaas(OAUTHBEARER)
    options = {} if module is None else module.options

    def option(name: str) -> str:
        return options.get(f"unsecuredValidator{name}", "").strip()

    try:
        clock_skew_ms = integer(0, INT_MAX)(option("AllowableClockSkewMs") or "0")
    except ValueError as fault:
        name, _ = texts.find(JAAS, OAUTHBEARER) or (JAAS, "")
        raise WrongSasl(f"{name}: unsecuredValidatorAllowableClockSkewMs: {fault}") from None
    return OAuthSettings(
        scope_claim=option("ScopeClaimName") or "scope",
        principal_claim=option("PrincipalClaimName") or "sub",
        required_scope=tuple(option("RequiredScope").split()),
        clock_skew_ms=clock_skew_ms,
    )
