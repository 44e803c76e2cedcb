"""How fast both let connections in, in all and from one address (KIP-612)."""

from __future__ import annotations

import socket
import time

from integration.differential.quotas.limited import Both, Limited, same
from integration.support.awaiting import wait_until
from kshim.testing.wire import framed
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER, SET, DELETE = 4, 0, 1
RATE = "max.connection.creation.rate"
ASKED = framed(0, ApiVersionsRequest())
LONG_S = 0.5
"""A connection that must wait is not served sooner, and others are."""


def answered_s(limited: Limited, source: str) -> tuple[str, float]:
    """What becomes of a connection from an address that asks at once: served or closed, after how long."""
    began_s = time.monotonic()
    with socket.create_connection((limited.server.host, limited.server.port), 10, (source, 0)) as connection:
        try:
            connection.sendall(ASKED)
            heard = connection.recv(1)
        except ConnectionError:
            heard = b""
    return "served" if heard else "closed", time.monotonic() - began_s


def burst(limited: Limited, source: str, count: int) -> list[str]:
    """What becomes of connections one after the other. None is closed before the first is a second old, as
    then its address is within its rate again.
    """
    began_s, ends = time.monotonic(), []
    for _ in range(count):
        end, _ = answered_s(limited, source)
        assert end == "served" or time.monotonic() > began_s + 0.99
        ends.append(end)
    return ends


def test_connections_from_one_address(both: Both) -> None:
    """Ten in the window; the next is not served, and closed after a second. Other addresses are served."""

    def play(limited: Limited) -> list[str]:
        limited.set(([("ip", "127.0.0.9")], {"connection_creation_rate": 1}))
        of_one = burst(limited, "127.0.0.9", 12)
        of_other = burst(limited, "127.0.0.8", 3)
        limited.set(([("ip", "127.0.0.9")], {"connection_creation_rate": None}))
        return of_one + of_other + burst(limited, "127.0.0.9", 2)

    assert same(both, play) == ["served"] * 10 + ["closed"] * 2 + ["served"] * 5


def test_a_quota_of_all_addresses_is_each_one_s_own(both: Both) -> None:
    own, of_all = [("ip", "127.0.0.1")], [("ip", None)]

    def play(limited: Limited) -> list[str]:
        rate = "connection_creation_rate"
        limited.set((own, {rate: 10_000}), (of_all, {rate: 1}))
        seen = burst(limited, "127.0.0.6", 11) + burst(limited, "127.0.0.5", 1)
        limited.set((of_all, {rate: None}), (own, {rate: None}))
        return seen

    assert same(both, play) == ["served"] * 10 + ["closed", "served"]


def test_connections_in_all(both: Both) -> None:
    """They are let in, but later. The limit is set at run time, and counts those that came before."""

    def change(limited: Limited, rate: str | None) -> None:
        config = AlterableConfig(name=RATE, config_operation=DELETE if rate is None else SET, value=rate)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=(config,))
        told = limited.ask("admin", 1, IncrementalAlterConfigsRequest(resources=(resource,))).answer
        assert not told.responses[0].error_code

    def play(limited: Limited) -> list[str]:
        change(limited, "1")
        wait_until(lambda: answered_s(limited, "127.0.0.7")[1] > LONG_S, 20, "the rate is limited")
        late = [answered_s(limited, "127.0.0.7") for _ in range(2)]
        assert min(waited_s for _, waited_s in late) > LONG_S
        change(limited, None)
        wait_until(lambda: answered_s(limited, "127.0.0.7")[1] < LONG_S, 20, "the rate is not limited")
        return [end for end, _ in late]

    assert same(both, play) == ["served"] * 2
