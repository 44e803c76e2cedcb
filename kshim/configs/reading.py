"""Makes a `Config` from names and values, which come from a server.properties file and KEY=VALUE options.

A Kafka property without effect gives a warning, because people pass the server.properties they have. Any
other unknown name is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kshim.configs.config import PROPERTIES, Config, property_text
from kshim.configs.consumer_groups import consumer_group_problems
from kshim.configs.listeners import LISTENER_PREFIX, WrongListener
from kshim.configs.tls import WrongTls, is_override, tls_settings, without_effect

ALIASES = {"broker.id": "node.id", "log.dir": "log.dirs"}
# Command-line options and the properties that they set. An option wins over the property's name.
OPTIONS = {
    "--listen": "listeners",
    "--advertise": "advertised.listeners",
    "--brokers": "brokers",
    "--data-dir": "log.dirs",
    "--control": "control.path",
    "--http": "http.listener",
    "--upstream": "upstream.bootstrap.servers",
}
FOR_ONE_LISTENER = {"max.connection.creation.rate"}
"""Properties that may be set for one listener, as listener.name.internal.max.connection.creation.rate."""
UPSTREAM_PREFIX = "upstream."
SASL_ENABLED = "sasl.enabled.mechanisms"
# Properties of KRaft without a warning: every server.properties has them, but kshim has no quorum.
SILENT = {
    "process.roles",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.mechanism.controller.protocol",
}


class ConfigError(ValueError):
    """The configuration cannot be used."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)  # one line for each fault, which says which values are right
        super().__init__("\n".join(self.problems))


def new_config(properties: Mapping[str, str]) -> tuple[Config, list[str]]:
    """Make a Config from names and values. Names are those of PROPERTIES, ALIASES and OPTIONS.

    Returns the config, and one line of warning for every Kafka property without effect. Raises ConfigError
    with one line for each fault.
    """
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    problems: list[str] = []
    warnings: list[str] = []
    for key in sorted(properties, key=lambda key: (key in OPTIONS, key not in ALIASES)):
        name, text = (ALIASES | OPTIONS).get(key, key), properties[key]
        given[name] = text.strip()
        try:
            if name in PROPERTIES:
                values[name.replace(".", "_")] = _value(name, text.strip())
            elif (of_all := _without_listener(name)) in FOR_ONE_LISTENER:
                _value(of_all, text.strip())
            elif name.startswith(UPSTREAM_PREFIX):
                _check_upstream_name(name)
            elif name not in SILENT and not is_override(name):
                warnings += _no_effect(name)
        except ValueError as error:
            shown = "…" if name in PROPERTIES and PROPERTIES[name].is_secret else text.strip()
            is_known = name in PROPERTIES or _without_listener(name) in FOR_ONE_LISTENER
            problems.append(f"{key}={shown}: {error}" if is_known else str(error))
    config = Config(**values, given=given)
    problems += _problems(config, {(ALIASES | OPTIONS).get(key, key): key for key in properties})
    if problems:
        raise ConfigError(problems)
    warnings += without_effect(given, config.listener_configs)
    return config, warnings + _without_upstream(config)


def _problems(config: Config, keys: Mapping[str, str]) -> Iterator[str]:
    """Faults in the combination of properties. keys: the name under which the user set each property."""
    try:
        for listener in config.listener_configs:
            if listener.protocol.is_tls:
                tls_settings(config.given, listener)
    except WrongListener as error:
        text = property_text(getattr(config, error.name.replace(".", "_")))
        yield f"{keys.get(error.name, error.name)}={text}: {error}"
    except WrongTls as error:
        yield str(error)
    else:
        yield from _sasl_problems(config)
        yield from _mechanism_problems(config)
    yield from _upstream_problems(config)
    if config.upstream and config.brokers > 1:
        key = keys.get("brokers", "brokers")
        yield f"{key}={config.brokers}: expected none with an upstream, whose brokers these are"
    if config.upstream and config.authorizer_class_name:
        key = "authorizer.class.name"
        yield f"{key}={config.authorizer_class_name}: expected none with an upstream, whose ACLs count"
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        yield (
            f"group.min.session.timeout.ms={config.group_min_session_timeout_ms}: expected at most "
            f"group.max.session.timeout.ms, which is {config.group_max_session_timeout_ms}"
        )
    yield from consumer_group_problems(config)
    if config.http_listener is not None and not config.http_listener.is_loopback and not config.http_token:
        yield (
            f"http.listener={config.http_listener}: expected http.token, too, as others can connect to this "
            "address; or a loopback address, as in 127.0.0.1:8080"
        )


def _mechanism_problems(config: Config) -> Iterator[str]:
    """A fault for each property that names a mechanism that there is not, if no listener with SASL reads it.

    GSSAPI, which is Apache Kafka's default, is accepted there.
    """
    if not any(key.endswith(SASL_ENABLED) for key in config.given):
        return
    from kshim.configs.sasl import MECHANISMS

    names = {listener.name.lower() for listener in config.listener_configs if listener.protocol.is_sasl}
    for key, text in config.given.items():
        of_all = _without_listener(key)
        if SASL_ENABLED not in (key, of_all):
            continue
        of_listener = key.removeprefix(LISTENER_PREFIX).partition(".")[0] if of_all else ""
        is_read = of_listener in names if of_all else bool(names)
        unknown = [each for each in text.split(",") if each.strip() not in (*MECHANISMS, "GSSAPI", "")]
        if unknown and not is_read:
            yield f"{key}={text}: no mechanism {unknown[0].strip()}; expected some of {', '.join(MECHANISMS)}"


def _sasl_problems(config: Config) -> Iterator[str]:
    """Faults in the properties of SASL, one for each listener with SASL at most."""
    names = [listener.name for listener in config.listener_configs if listener.protocol.is_sasl]
    if not names:
        return
    from kshim.configs.sasl import WrongSasl, relayed_settings, sasl_settings

    is_relayed = bool(config.upstream) and config.upstream_sasl_pass_through_enable
    settings = relayed_settings if is_relayed else sasl_settings
    for name in names:
        try:
            settings(config.given, name)
        except WrongSasl as error:
            yield str(error)


def _upstream_problems(config: Config) -> Iterator[str]:
    """Faults in the connection to the upstream and in the sharing of groups."""
    if config.upstream and config.upstream_groups_fault:
        yield config.upstream_groups_fault
    pattern = config.upstream_advertised_host_pattern
    if config.upstream and pattern is not None and not config.broker_names:
        yield (
            f"upstream.advertised.host.pattern={pattern.text}: expected a listener with TLS, whose "
            "clients say which name they mean"
        )
    if config.upstream and any(name.startswith(UPSTREAM_PREFIX) for name in config.given):
        from kshim.configs.upstream import WrongUpstreamProperty, check_pass_through, upstream_security

        try:
            security = upstream_security(config.given)
            passes_logins = config.upstream_sasl_pass_through_enable
            if passes_logins:
                check_pass_through(security, config.listener_configs)
            if config.upstream_identities_file:
                from kshim.configs.upstream_identities import check_identities

                check_identities(security, passes_logins=passes_logins)
        except WrongUpstreamProperty as error:
            yield str(error)


def _without_upstream(config: Config) -> list[str]:
    """A warning for each property of an upstream, if no upstream is configured."""
    names = [name for name in config.given if name.startswith(UPSTREAM_PREFIX) and not config.upstream]
    return [f"{name} has no effect here: upstream.bootstrap.servers is not set" for name in names]


def _check_upstream_name(name: str) -> None:
    """Raise ValueError for a name that is no property of an upstream."""
    from kshim.configs.upstream import PROPERTIES as OF_UPSTREAM

    if name not in OF_UPSTREAM:
        raise _no_such(name, (*PROPERTIES, *OF_UPSTREAM))


def _without_listener(name: str) -> str:
    """Remove the prefix for a listener: listener.name.internal.max.connections becomes max.connections.

    Returns the empty text for a name without such a prefix.
    """
    return name.removeprefix(LISTENER_PREFIX).partition(".")[2] if name.startswith(LISTENER_PREFIX) else ""


def _value(name: str, text: str) -> object:
    if name == "log.dirs" and (not text or "," in text):
        raise ValueError("expected one directory, or :memory:")
    return PROPERTIES[name].parse(text)


def _no_effect(name: str) -> list[str]:
    """The warning for a property that only Kafka has; none for one of SASL. Raises ValueError for a name that
    Kafka does not know.
    """
    from kshim.configs.brokers import is_kafka_property
    from kshim.configs.sasl import is_of_sasl

    if is_of_sasl(name):
        return []
    if is_kafka_property(name):
        return [f"{name} has no effect here"]
    raise _no_such(name, (*PROPERTIES, *ALIASES))


def _no_such(name: str, known: Iterable[str]) -> ValueError:
    return ValueError(f"{name}: no such property{suggestion(name, known)}; `kshim config` lists them all")


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question that follows "no such property": " (did you mean …?)". Empty if no known name is like it."""
    nearest = _nearest(name[:_LONGEST_COMPARED], known)
    return f" (did you mean {nearest}?)" if nearest else ""


_LEAST_ALIKE = 0.6
"""Names that have less in common are not taken for each other; from 0 to 1."""
_LONGEST_COMPARED = 100
"""Most characters of an unknown name that are compared: a wrong file may have thousands of long names."""


def _nearest(name: str, all_known: Iterable[str]) -> str:
    """The property whose name is most like `name`; empty if none is much like it."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(b=name)
    ratio, nearest = _LEAST_ALIKE, ""
    for known in all_known:
        matcher.set_seq1(known)
        # Both are upper bounds of the ratio, and far faster.
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio:
            ratio, nearest = max((ratio, nearest), (matcher.ratio(), known))
    return nearest
