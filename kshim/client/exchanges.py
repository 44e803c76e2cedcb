"""Begins logins with the credentials in a client's properties."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from kshim.authentication.client import Exchange, OAuthBearer, Plain, Scram
from kshim.authentication.scram_credential import ScramMechanism
from kshim.client.session import LoginFailed
from kshim.configs.sasl import OAUTHBEARER, PLAIN
from kshim.configs.upstream import JAAS, LoginSettings
from kshim.configs.values import Secret

_EXTENSION: Final = ("unsecuredLoginExtension_", "extension_")
"""Prefixes of login module options sent as extensions: with an unsecured token, with any other."""


def new_exchange(settings: LoginSettings, token: Secret | None) -> Exchange:
    """Begin a login. token: the token endpoint's; None if the settings name none. Raises LoginFailed."""
    mechanism, options = settings.mechanism, settings.options
    if mechanism == OAUTHBEARER:
        return _new_bearer(options, token)
    username, password = options["username"], options["password"]
    if mechanism == PLAIN:
        return Plain(username, password)
    by_token = options.get("tokenauth", "").lower() == "true"
    return Scram(ScramMechanism(mechanism), username, password, is_delegation_token=by_token)


def _new_bearer(options: Mapping[str, Secret], token: Secret | None) -> OAuthBearer:
    if token is not None:
        return OAuthBearer(token, _named(options, _EXTENSION[1]))
    from kshim.authentication.unsecured_token import new_token

    try:
        return OAuthBearer(new_token(options, time.time()), _named(options, _EXTENSION[0]))
    except ValueError as error:
        raise LoginFailed(f"upstream.{JAAS}: {error}") from None


def _named(options: Mapping[str, Secret], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in options.items() if name.startswith(prefix)}
