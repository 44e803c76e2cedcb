"""Asks a broker of this process as a client would that has not authenticated: every check and ACL applies."""

from __future__ import annotations

from dataclasses import replace
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from kshim.callers import Client, RequestContext
from kshim.cluster import NO_LEADER
from kshim.configs.endpoint import NO_ADDRESS, Endpoint
from kshim.network.dispatch import API
from kshim.turns.promise import run, settled
from schemas.api_key import ApiKey

if TYPE_CHECKING:
    from kshim.answering import Broker

CLIENT_ID = "kshim page"


class AskBroker:
    """Implements `kshim.http.asking.Ask` for the brokers of a local cluster."""

    def __init__(self, broker: Broker, here: Endpoint) -> None:
        """here: stands for the address at which the request arrives."""
        self._broker = broker
        self._here = here

    async def __call__(self, api_key: ApiKey, version: int, request: Any, host: str, node_id: int) -> Any:
        """Return the response of one broker. host: the asker's, as Java prints it: "/127.0.0.1"."""
        served = API[api_key]
        function = served.function if self._broker.authorizer is None else served.guarded
        client = Client(host, NO_ADDRESS, self._here, client_id=CLIENT_ID)
        node_id = node_id if node_id != NO_LEADER else self._broker.node_id
        context = RequestContext(version, CLIENT_ID, host, self._here, node_id=node_id, client=client)
        answer = function(replace(self._broker, node_id=node_id), context, request)
        if isinstance(answer, CoroutineType):
            answer = run(answer)
        return await settled(answer)
