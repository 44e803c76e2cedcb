"""The rules of one listener with SASL: its mechanisms, and the length of its sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kshim.authentication.mechanism import Mechanism
from kshim.configs.listeners import ListenerConfig
from kshim.configs.sasl import JWKS_URL, OAUTHBEARER, PLAIN, OAuthSettings, SaslSettings, WrongSasl

if TYPE_CHECKING:
    from kshim.authentication.oauthbearer import Validate
    from kshim.authentication.tokens import Claims

NewMechanism = Callable[[], Mechanism]
"""A function that begins an exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslRules:
    """The rules of one listener with SASL."""

    listener_name: str
    protocol: str
    """SASL_PLAINTEXT or SASL_SSL."""
    mechanisms: Mapping[str, NewMechanism | None]
    """The enabled mechanisms, by name; None if another server checks the tokens."""
    max_reauth_ms: Mapping[str, int]
    max_receive_bytes: int
    failure_delay_ms: int
    """The time before a client gets the answer that it failed to authenticate; it makes guessing slow."""


def new_rules(
    listener: ListenerConfig,
    settings: SaslSettings,
    failure_delay_ms: int,
    new_scram: Callable[[str], Mechanism],
) -> SaslRules:
    """The rules of a listener. Raises WrongSasl.

    new_scram: takes the name of a SCRAM mechanism, and begins an exchange.
    """
    return SaslRules(
        listener_name=listener.name,
        protocol=listener.protocol,
        mechanisms={name: _mechanism(name, settings, new_scram) for name in settings.mechanisms},
        max_reauth_ms=settings.max_reauth_ms,
        max_receive_bytes=settings.max_receive_bytes,
        failure_delay_ms=failure_delay_ms,
    )


def relayed_rules(listener: ListenerConfig, settings: SaslSettings) -> SaslRules:
    """The rules of a listener whose clients authenticate at a server beyond. That server delays its answers
    to failures, and limits how long a login counts.
    """
    return SaslRules(
        listener_name=listener.name,
        protocol=listener.protocol,
        mechanisms=dict.fromkeys(settings.mechanisms),
        max_reauth_ms={},
        max_receive_bytes=settings.max_receive_bytes,
        failure_delay_ms=0,
    )


def _mechanism(name: str, settings: SaslSettings, new_scram: Callable[[str], Mechanism]) -> NewMechanism:
    if name == PLAIN:
        from kshim.authentication.plain import Plain

        return partial(Plain, settings.passwords)
    if name == OAUTHBEARER:
        from kshim.authentication.oauthbearer import OAuthBearer

        return partial(OAuthBearer, _validator(settings.oauth))
    return partial(new_scram, name)


def _validator(settings: OAuthSettings) -> Validate:
    """A function that checks tokens. Imports PyJWT only for signed ones. Raises WrongSasl."""
    from kshim.authentication.tokens import ClaimRules, unsecured_claims

    rules = ClaimRules(
        principal_claim=settings.principal_claim,
        scope_claim=settings.scope_claim,
        required_scope=settings.required_scope,
        audiences=settings.audiences,
        issuer=settings.issuer,
        is_signed=bool(settings.jwks_url),
        clock_skew_ms=settings.clock_skew_ms,
    )
    claims = _signed_claims(settings.jwks_url) if settings.jwks_url else unsecured_claims
    return lambda token, now_ms: rules.login(claims(token), now_ms)


def _signed_claims(url: str) -> Callable[[str], Claims]:
    try:
        from kshim.authentication.signed_tokens import SignedTokens
    except ImportError as error:
        raise WrongSasl(f"{JWKS_URL}: needs {error.name}: install kshim[oauthbearer]") from None
    try:
        return SignedTokens.of_url(url).claims
    except ValueError as fault:
        raise WrongSasl(f"{JWKS_URL}={url}: {fault}") from None
