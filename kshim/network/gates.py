"""Makes the gates of all listeners with SASL, at the start."""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING

from kshim.authentication.mechanism import Mechanism
from kshim.authentication.rules import SaslRules, new_rules, relayed_rules
from kshim.configs.sasl import OAUTHBEARER, relayed_settings, sasl_settings
from kshim.network.gate import GateContext, Logins, Relayed

if TYPE_CHECKING:
    from kshim.answering.views import Answering
    from kshim.authentication.scram import Keys
    from kshim.authentication.scram_credential import ScramMechanism
    from kshim.cluster.scram import KnownUsers
    from kshim.configs.config import Config
    from kshim.configs.listeners import ListenerConfig

logger = logging.getLogger(__name__)

_NONCE_BYTES = 24


def new_gates(broker: Answering, users: KnownUsers, relayed: Relayed | None) -> dict[str, GateContext]:
    """Return what the gates of each listener with SASL share, by the listener's name. Raises WrongSasl.

    users: of SCRAM. relayed: relays exchanges to a server beyond, which checks the tokens; None if this one
    checks them.
    """
    config, logins = broker.config, Logins()
    gates = {}
    for listener in config.listener_configs:
        if not listener.protocol.is_sasl:
            continue
        if relayed is None:
            rules = _rules(config, listener, users)
        else:
            rules = relayed_rules(listener, relayed_settings(config.given, listener.name))
        gates[listener.name] = GateContext(
            rules=rules,
            clock=broker.clock,
            now_ms=broker.now_ms,
            once=broker.once,
            logins=logins,
            relayed=relayed,
        )
    return gates


def _rules(config: Config, listener: ListenerConfig, users: KnownUsers) -> SaslRules:
    """The rules of a listener whose clients authenticate here. Raises WrongSasl."""
    settings = sasl_settings(config.given, listener.name)
    if OAUTHBEARER in settings.mechanisms and not settings.oauth.jwks_url:
        logger.warning(
            "listener %s takes unsecured tokens, which anybody can make: for tests only", listener.name
        )
    delay_ms = config.connection_failed_authentication_delay_ms
    return new_rules(listener, settings, delay_ms, partial(_new_scram, users))


def _new_scram(users: KnownUsers, name: str) -> Mechanism:
    """Begin a SCRAM exchange. Its modules are imported at the first one."""
    from kshim.authentication.scram import Scram
    from kshim.authentication.scram_credential import ScramMechanism

    mechanism = ScramMechanism(name)
    return Scram(mechanism, partial(_keys, users, mechanism), partial(secrets.token_urlsafe, _NONCE_BYTES))


def _keys(users: KnownUsers, mechanism: ScramMechanism, name: str) -> Keys:
    from kshim.authentication.scram import Keys

    credential = users.credentials.get((name, mechanism))
    invented = users.invented(name, mechanism)  # computed for every name, so that unknown users take as long
    return Keys(invented if credential is None else credential, credential is not None)
