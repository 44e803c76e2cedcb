"""Configs, as scenarios ask for them."""

from __future__ import annotations

from typing import Any

from integration.differential.differences.guest import Guest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC, BROKER, LOGGER = 2, 4, 8
DESCRIBE_CONFIGS = 4


def described_configs(guest: Guest, kind: int, name: str) -> dict[str, Any]:
    """Every config of a resource by its name, with synonyms and documentation."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=True)
    (result,) = guest.answer(DESCRIBE_CONFIGS, request).results
    assert not result.error_code, result
    return {config.name: config for config in result.configs}


def described_config(guest: Guest, config: str) -> Any:
    """A config of the broker."""
    return described_configs(guest, BROKER, "1")[config]
