"""What is beyond a client's connection: its passage to one upstream broker, once a request needs it.

Requests are read ahead within the connection's bounds, and replies leave in order, whoever answers them. When
the broker closes the passage, the client's connection is closed as well, as the broker would have done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kshim.callers import Client
from kshim.network.beyond import Near
from kshim.network.client_socket import DirectSocket
from kshim.network.states import Wait
from kshim.turns import Turn
from kshim.upstream.passage import Passage
from kshim.upstream.peek import large_produce
from kshim.upstream.splicing import Way, ready

if TYPE_CHECKING:
    from kshim.upstream.rights import Rights

NewPassage = Callable[[int, "Relay"], Passage]
"""Makes a passage to a broker, given its node id. The passage begins to connect."""
IsOwnTopic = Callable[[bytes], bool]
"""True for the name or id of kshim's own topic, to which clients may not write."""


class Relays:
    """The relays of all connected clients."""

    def __init__(self, new_passage: NewPassage, is_own_topic: IsOwnTopic) -> None:
        self.new_passage = new_passage
        self.is_own_topic = is_own_topic
        self.by_client: dict[Client, Relay] = {}
        self.need_whole = False
        """True while requests are looked into before they go on."""

    def new(self, node_id: int, near: Near) -> Relay:
        """Make the relay of a new connection to the port of an upstream broker."""
        relay = self.by_client[near.client] = Relay(self, node_id, near)
        return relay


class Relay:
    """One client of one upstream broker.

    It is the `Beyond` of the client's connection, and the `Client` of the passage.
    """

    def __init__(self, relays: Relays, node_id: int, near: Near) -> None:
        self._relays = relays
        self._node_id = node_id
        self._near = near
        self._passage: Passage | None = None
        self.gathers = False
        """See `Beyond`."""
        self.rights: Rights | None = None
        """What the upstream lets the client do, if the client authenticates there and was asked about."""
        if isinstance(near.transport, DirectSocket):
            near.transport.passing = self

    @property
    def client(self) -> Client:
        """The client."""
        return self._near.client

    @property
    def passage(self) -> Passage:
        """The connection to the broker; made with the first request that needs it."""
        if self._passage is None:
            self._passage = self._relays.new_passage(self._node_id, self)
        return self._passage

    @property
    def is_let_in(self) -> bool:
        """True if the client may send all requests: it has authenticated, or need not."""
        return self._near.is_let_in

    # ---- beyond the client's connection

    def begins(self, size: int, start: memoryview) -> bool:
        """True if a request is a large Produce that may go on before it is whole: nothing looks into it."""
        if self._relays.need_whole or self._near.is_seen_by_gate:
            return False
        topic = large_produce(size, start)
        return topic is not None and not self._relays.is_own_topic(topic)

    def flush(self) -> None:
        """See `Beyond`."""
        self.gathers = False
        if self._passage is not None:
            self._passage.flush()

    def send_part(self, part: memoryview) -> None:
        """See `Beyond`."""
        if self._passage is not None:
            self._passage.send_part(part)

    def go_on(self) -> None:
        """See `Beyond`."""
        if self._passage is not None:
            self._passage.go_on()

    def pause(self) -> None:
        """See `Beyond`."""
        if self._passage is not None:
            self._passage.pause()

    def resume(self) -> None:
        """See `Beyond`."""
        if self._passage is not None:
            self._passage.resume()

    def close(self) -> None:
        """See `Beyond`."""
        self._relays.by_client.pop(self._near.client, None)
        if self._passage is not None:
            self._passage.close()

    # ---- what a passage asks of its client

    def is_next(self, turn: Turn) -> bool:
        """True if all replies before that of `turn` have left."""
        return self._near.is_next(turn)

    def pass_on(self, data: bytes | memoryview) -> None:
        """Send part of the next reply."""
        self._near.send_part(data)

    @property
    def socket(self) -> DirectSocket | None:
        """The socket that takes the next reply straight from the broker's; None if it cannot now."""
        return ready(self._near.transport) if self._near.is_idle else None

    def wait_for_broker(self) -> None:
        """Read no requests until `go_on_with_broker` is called."""
        self._near.wait(Wait.BROKER)

    def go_on_with_broker(self) -> None:
        """Read requests again."""
        self._near.go_on(Wait.BROKER)

    def lost_broker(self, why: str) -> None:
        """Close, as the broker did."""
        self._near.refuse_lost(why)

    # ---- what goes straight on

    def straight_on(self) -> Way | None:
        """Return where the rest of a request in parts goes; see `Passing`."""
        left_bytes = self._near.left_bytes
        if not left_bytes or self._passage is None:
            return None
        to = self._passage.socket
        return None if to is None else Way(to, left_bytes, self._near.passed)
