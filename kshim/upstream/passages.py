"""Makes the passages of clients: to which broker each one goes, and as whom it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.upstream.contact import CONNECT_S
from kshim.upstream.passage import Passage

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor
    from kshim.upstream.brokers import Brokers
    from kshim.upstream.connector import Connector
    from kshim.upstream.identities import Identities
    from kshim.upstream.relay import Relay

MOST_RESPONSE_BYTES = 2**31 - 1


class Passages:
    """Connects passages in one of three ways: as kshim, by the client's own login, or with the client's
    credentials in a file.
    """

    def __init__(
        self,
        reactor: Reactor,
        connector: Connector,
        brokers: Brokers,
        identities: Identities | None,
        *,
        passes_logins: bool,
    ) -> None:
        """identities: the clients' credentials; None if kshim has none. passes_logins: True if clients log in
        at the upstream themselves.
        """
        self._reactor = reactor
        self._connector = connector
        self._brokers = brokers
        self._identities = identities
        self._passes_logins = passes_logins
        self.are_clients = passes_logins or identities is not None
        """True if each passage is its client to the upstream; False if all are kshim."""

    def new(self, node_id: int, relay: Relay) -> Passage:
        """Make a client's passage from the port of a broker. Raises Refused."""
        at = self._brokers.in_place_of(node_id) if self.are_clients else node_id
        address = self._brokers.address(at)
        passage = Passage(relay, str(address), MOST_RESPONSE_BYTES, self._reactor)
        if self._identities is not None:
            self._identities.connect(passage, relay.client, address, CONNECT_S)
        else:
            self._connector.connect(passage, address, CONNECT_S, logs_in=not self._passes_logins)
        return passage
