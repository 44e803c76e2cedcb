"""Makes the HTTP listener. Imported only if there is one, because it needs twisted.web."""

from __future__ import annotations

from collections.abc import Callable

from kshim.control.commands import Commands, Reading
from kshim.http.facts import Facts
from kshim.http.listener import HttpListener
from kshim.server.backend import Backend
from kshim.server.parts import Parts
from kshim.server.ports import B, Ports


def new_http(
    parts: Parts, ports: Ports[B], backend: Backend[B], commands: Commands, why_not_ready: Callable[[], str]
) -> HttpListener:
    """Return the listener, which does not listen yet. commands: what it may run if steering is
    allowed; else it runs those that only read.
    """
    assert ports.traffic is not None, "requests are counted where HTTP shows them"
    broker, config = ports.broker, parts.config
    facts = Facts(
        cluster=broker.cluster,
        groups=broker.groups,
        ends=backend.ends,
        listeners=ports.listeners,
        quotas={node_id: each.quotas for node_id, each in ports.brokers.items()},
        clock=parts.reactor,
        rounds=parts.rounds,
        wall_clock=parts.clock,
        aside=parts.aside,
        unread=parts.unread,
        traffic=ports.traffic,
        recorder=parts.recorder,
        activity=backend.activity,
        why_not_ready=why_not_ready,
        figures=backend.figures,
        look=backend.look,
        notice=backend.notice,
        others=backend.others,
        ask=backend.ask(ports),
        topic_configs=backend.topic_configs(),
        commands=commands if config.http_steering_enable else Reading(commands),
        is_steered=config.http_steering_enable,
    )
    return HttpListener(facts, config.http_token, parts.reactor)
