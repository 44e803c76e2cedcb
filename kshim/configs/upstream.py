"""The properties of an upstream: those of a client, as Kafka names them, behind `upstream.`."""

from __future__ import annotations

from dataclasses import dataclass

from kshim.configs.endpoint import Endpoint

PREFIX = "upstream."


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamConfig:
    """How to reach the cluster that kshim stands in front of."""

    bootstrap_servers: tuple[Endpoint, ...]
    """At least one."""
    start_timeout_ms: int = 10_000
    """How long to try, at the start, until one of them answers."""
