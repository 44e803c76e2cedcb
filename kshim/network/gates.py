"""Makes the gates of all listeners with SASL, at the start."""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING

from kshim.authentication.mechanism import Mechanism
from kshim.authentication.rules import new_rules
from kshim.configs.sasl import OAUTHBEARER, sasl_settings
from kshim.network.gate import GateContext, Logins

if TYPE_CHECKING:
    from kshim.answering.views import Answering
    from kshim.authentication.scram import Keys
    from kshim.authentication.scram_credential import ScramMechanism
    from kshim.cluster.scram import KnownUsers

logger = logging.getLogger(__name__)

_NONCE_BYTES = 24


def new_gates(broker: Answering, users: KnownUsers) -> dict[str, GateContext]:
    """Return what the gates of each listener with SASL share, by the listener's name. users: of SCRAM. Raises
    WrongSasl.
    """
    config, logins = broker.config, Logins()
    gates = {}
    for listener in config.listener_configs:
        if not listener.protocol.is_sasl:
            continue
        settings = sasl_settings(config.given, listener.name)
        rules = new_rules(
            listener,
            settings,
            config.connection_failed_authentication_delay_ms,
            partial(_new_scram, users),
        )
        if OAUTHBEARER in settings.mechanisms and not settings.oauth.jwks_url:
            logger.warning(
                "listener %s takes unsecured tokens, which anybody can make: for tests only", listener.name
            )
        gates[listener.name] = GateContext(
            rules=rules, clock=broker.clock, now_ms=broker.now_ms, once=broker.once, logins=logins
        )
    return gates


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
