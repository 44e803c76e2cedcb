"""Limits of single addresses, and Kafka's words for what they may not be."""

import pytest

from kshim.configs.brokers import BROKER_CONFIGS
from kshim.configs.per_ip import per_ip
from kshim.configs.reading import ConfigError, new_config

OVERRIDES = "max.connections.per.ip.overrides"


def test_counts_by_host() -> None:
    assert per_ip(OVERRIDES, "") == {}
    assert per_ip(OVERRIDES, "10.0.0.7:3, a.example:0 ,::1:-1,") == {"10.0.0.7": 3, "a.example": 0, "::1": -1}


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (OVERRIDES, "x", f"Error parsing configuration property '{OVERRIDES}': begin 0, end -1, length 1"),
        (OVERRIDES, "10.0.0.7:x", 'For input string: "x"'),
        (OVERRIDES, "not a host:3", f"{OVERRIDES} contains invalid addresses : not a host"),
        (OVERRIDES, "[::1]:3", f"{OVERRIDES} contains invalid addresses : [::1]"),
        ("max.connections", "1", ""),
        (
            "max.connections",
            "0",
            "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connections 0 for "
            "configuration Invalid dynamic configuration",
        ),
        (
            "max.connections",
            "-1",
            "Invalid value -1 for configuration max.connections: Value must be at least 0",
        ),
    ],
)
def test_faults_at_run_time_are_kafkas(name: str, text: str, fault: str) -> None:
    assert BROKER_CONFIGS[name].fault(text) == fault


def test_a_fault_at_the_start_says_what_is_right() -> None:
    with pytest.raises(ConfigError) as error:
        new_config({OVERRIDES: "x"})
    assert error.value.problems == (f"{OVERRIDES}=x: expected HOST:COUNT, several separated by commas",)
