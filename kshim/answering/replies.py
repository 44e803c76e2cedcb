"""Replies that stay the same until the cluster changes, by the bytes of their requests.

Clients ask for the versions, the brokers, the topics and the coordinators again and again. What they ask
differs in the correlation id alone, and so do the answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple, Protocol

from kshim.callers import Client
from kshim.callers.bounded import forget_first
from kshim.callers.principal import Principal
from schemas.api_key import ApiKey

MOST_REPLIES = 512
MOST_BYTES = 16 * 1024
"""Of a request and its reply; larger ones are not kept."""
KEYS: Final = frozenset(
    key.to_bytes(2) for key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
)
"""What the requests begin with whose replies are kept."""
_CORRELATION_ID = slice(4, 8)

Asker = tuple[Principal, str, Hashable]
_Key = tuple[Asker | None, int, str, int, bytes, bytes]


class Question(NamedTuple):
    """A request whose reply may be kept."""

    frame: bytes
    node_id: int
    """The broker that was asked."""
    version: int
    """Of the cluster."""
    asker: Asker | None = None
    """The principal that asks, its host, and the version of the authorizer, where there is one: what a client
    sees follows from all three. ACLs come into force some time after the cluster's version has risen.
    """


class _Reply(NamedTuple):
    rest: bytes
    """The bytes after the correlation id."""
    software: str | None
    """The client's software that the request names; None if it names none."""


class Changing(Protocol):
    """A cluster that changes."""

    @property
    def version(self) -> int:
        """Grows with each change that clients may see."""


class Replies:
    """All replies that are kept."""

    def __init__(self, cluster: Changing) -> None:
        self.cluster = cluster
        self._replies: dict[_Key, _Reply] = {}
        self._version = -1  # of the cluster, which all replies are of

    def find(self, question: Question, client: Client) -> bytes | None:
        """The reply to a request that was answered before; None for one that has to be answered."""
        if question.version != self._version:
            return None
        reply = self._replies.get(_key(question, client))
        if reply is None:
            return None
        if reply.software is not None:
            client.software = reply.software
        return question.frame[_CORRELATION_ID] + reply.rest

    def keep(self, question: Question, client: Client, reply: bytes) -> None:
        """Keep a reply that was just made."""
        frame, version = question.frame, question.version
        if len(frame) + len(reply) > MOST_BYTES:
            return
        if version != self._version:
            self._version = version
            self._replies.clear()
        names_software = frame.startswith(ApiKey.API_VERSIONS.to_bytes(2))
        rest = reply[_CORRELATION_ID.stop - _CORRELATION_ID.start :]
        self._replies[_key(question, client)] = _Reply(rest, client.software if names_software else None)
        forget_first(self._replies, MOST_REPLIES)


def _key(question: Question, client: Client) -> _Key:
    """All that the reply depends on, but the cluster."""
    frame, advertised = question.frame, client.advertised
    return question.asker, question.node_id, advertised.host, advertised.port, frame[:4], frame[8:]
