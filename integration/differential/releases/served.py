"""The APIs, features and configs of two running servers, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from integration.differential.words.history import TOPIC
from kshim.testing.wire import Wire
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

RESOURCES: Mapping[str, tuple[int, str]] = {
    "topic": (2, TOPIC),
    "broker": (4, "1"),
    "client metrics": (16, "any"),
    "group": (32, "any"),
}
PLACES = {"advertised.listeners", "controller.quorum.voters", "listeners", "log.dirs"}
"""Configs with the places of one server."""
SHOWN = 40
"""Of two values, a longer common beginning is left out."""
NEWEST_FOR_ALL = 3
"""The version of ApiVersions that all releases serve."""


def apis_and_features(address: Any) -> dict[str, str]:
    with Wire(address.host, address.port) as wire:
        answer = wire.ask(
            NEWEST_FOR_ALL, ApiVersionsRequest(client_software_name="a", client_software_version="1")
        )
    told = {f"API {each.api_key}": f"{each.min_version} to {each.max_version}" for each in answer.api_keys}
    for each in answer.supported_features:
        told[f"supported {each.name}"] = f"{each.min_version} to {each.max_version}"
    for each in answer.finalized_features:
        told[f"finalized {each.name}"] = str(each.max_version_level)
    return told


def configs(address: Any, kind: int, name: str) -> dict[str, dict[str, str]]:
    """What a server says about each config of a resource, by the config's name."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    with Wire(address.host, address.port) as wire:
        (result,) = wire.ask(4, request).results
    assert not result.error_code, result
    return {
        config.name: {
            "value": str(config.value),
            "source": str(config.config_source),
            "type": str(config.config_type),
            "read-only": str(config.read_only),
            "sensitive": str(config.is_sensitive),
            "synonyms": " ".join(f"{each.name}={each.value}" for each in config.synonyms),
            "documentation": str(config.documentation),
        }
        for config in result.configs
        if config.name not in PLACES
    }


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """A line for each entry that is new, gone or different."""
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"{name} is new: {new[name]}"
        elif name not in new:
            yield f"{name} is gone: {old[name]}"
        elif old[name] != new[name]:
            yield f"{name}: {old[name]} → {new[name]}"


def config_changes(
    old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"{name} is new: {', '.join(f'{key} {value}' for key, value in new[name].items())}"
        elif name not in new:
            yield f"{name} is gone"
        else:
            yield from (f"{name}: {line}" for line in changes(*_without_common(old[name], new[name])))


def _without_common(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Both descriptions of a config; of two long values only what differs."""
    shorter_old, shorter_new = dict(old), dict(new)
    for name in old.keys() & new.keys():
        pairs = enumerate(zip(old[name], new[name], strict=False))
        common = next((at for at, (one, other) in pairs if one != other), 0)
        if old[name] != new[name] and common > SHOWN:
            shorter_old[name], shorter_new[name] = f"…{old[name][common:]}", f"…{new[name][common:]}"
    return shorter_old, shorter_new
