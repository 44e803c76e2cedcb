"""One request: its sender, its connection, and how it is refused without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from kshim.callers.principal import ANONYMOUS, Principal
from kshim.configs.endpoint import NO_ADDRESS, Endpoint
from kshim.quotas.account import Account
from kshim.turns import Turn


class Membership(Protocol):
    """The names of a member of a group."""

    @property
    def group_id(self) -> str: ...
    @property
    def member_id(self) -> str: ...


class NamedMember(NamedTuple):
    """A member by its names alone."""

    group_id: str
    member_id: str


class Contact(StrEnum):
    """A connection is open, or has ended in one of three ways."""

    OPEN = "open"
    CLOSED = "closed"
    """The client closed it; the system does so, too, for a process that is killed."""
    LOST = "lost"
    """The client's host did not answer any more."""
    ENDED = "ended"
    """The server closed it."""


@dataclass(slots=True, eq=False)
class Client:
    """The other end of a connection."""

    host: str
    """As Java prints an address: "/127.0.0.1"."""
    address: Endpoint
    """The address and port that it connected from, for the log."""
    advertised: Endpoint
    """The address that it should connect to."""
    principal: Principal = ANONYMOUS
    """Who it is: for the authorizer, the quotas and the log. Exchanged when it authenticates."""
    listener_name: str = "PLAINTEXT"
    """The listener that it came by."""
    client_id: str = ""
    """The client id of its last request."""
    software: str = ""
    """The name and the version of its software, once an ApiVersions of v3 or later has named them."""
    member: Membership | None = None
    """The member that it is, by its last SyncGroup or Heartbeat, or by what a JoinGroup was answered."""
    contact: Contact = Contact.OPEN
    observer: Callable[[Client], object] | None = None
    """Called when the connection has ended; set by whoever must know what became of `member`."""

    @property
    def is_gone(self) -> bool:
        """True if its connection has ended."""
        return self.contact is not Contact.OPEN

    def ended(self, contact: Contact) -> None:
        """Note that the connection has ended, and call the observer."""
        self.contact = contact
        if self.observer is not None:
            self.observer(self)

    def named(self, client_id: str | None) -> str:
        """The client's name in the log, for a request with this client id."""
        software = f", {self.software}" if self.software else ""
        return f"{self.address} (client_id {client_id!r}{software})"


@dataclass(slots=True)
class RequestContext:
    """One request's caller."""

    api_version: int
    client_id: str
    """Empty if the client sent null."""
    client_host: str
    """As Java prints an address: "/127.0.0.1"."""
    advertised: Endpoint
    """The address that this client should connect to: the advertised listener, else the one its connection
    arrived at.
    """
    turn: Turn = field(default_factory=Turn)
    """A parked Fetch finishes when it fires, because replies leave in request order."""
    node_id: int = 0
    """The broker that was asked."""
    client: Client | None = None
    """None in a request of the server's own."""
    may_see: Callable[[str], bool] | None = None
    """Returns True if the caller may see a topic; None if it may see all. Fetch and DescribeTopicPartitions
    call it, because they find topics that the request does not name.
    """
    account: Account | None = None
    """None if its client has no quotas."""
    stays_the_same: bool = False
    """True if the reply to these bytes stays the same until the cluster changes (see `replies`). Set it
    before returning.
    """

    @property
    def address(self) -> Endpoint:
        """The client's own address and port; empty in a request of the server's own."""
        return self.client.address if self.client else NO_ADDRESS

    @property
    def sender(self) -> str:
        """The caller's name in the log."""
        return self.client.named(self.client_id) if self.client else self.client_host


class Refused(Exception):
    """A request gets no answer, and its connection is closed; str() is the line for the log."""

    def __init__(
        self, why: str, level: int = logging.WARNING, *, once: Hashable = None, names: Hashable = None
    ) -> None:
        """once: the line is not repeated at each attempt of the same address with the same `once` and
        `names`, such as its client id.
        """
        super().__init__(why)
        self.once, self.names = once, names
        self.level = level
        """WARNING if the client sent what cannot be served; ERROR if the fault is ours, and the cause's
        traceback is logged too.
        """
        self.last_words: bytes | None = None
        """The answer with which the connection is closed all the same; None for none."""
