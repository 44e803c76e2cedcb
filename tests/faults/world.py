"""A broker with connections in memory, whose requests may be struck by faults."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure

from kshim.control.faults import FaultSteering
from kshim.faults.refusals import LOCAL
from kshim.network.connections import Connections, Entrance
from kshim.network.dispatch import answer
from kshim.network.frames import Frames, framed
from kshim.network.intake import Intake
from kshim.network.listeners import BrokerListeners, Listener
from kshim.network.pace import AddressRates, Pace
from kshim.network.places import Places
from kshim.network.shared import Shared
from kshim.testing.wire import payload
from kshim.turns.promise import Promise
from schemas.api_key import ApiKey
from schemas.message import definition
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.primitives import Array
from schemas.registry import MESSAGES, VERSIONS, decode_response
from tests.api.harness import advance, new_broker
from tests.network.no_limits import no_limits
from tests.network.transport import Transport


class Groups:
    """Promises an answer to each request, which the test gives."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.promises: list[Promise[Any]] = []

    def submit(self, context: Any, request: Any) -> Promise[Any]:
        self.asked.append(request)
        self.promises.append(Promise())
        return self.promises[-1]

    heartbeat = submit


class Peer:
    """One client's connection."""

    def __init__(self, connections: Entrance, client_id: str) -> None:
        self.protocol = connections.buildProtocol(IPv4Address("TCP", "10.0.0.7", 51000))
        assert self.protocol is not None
        self.transport = Transport()
        self.protocol.makeConnection(self.transport)
        self._client_id = client_id
        self._sent: list[tuple[ApiKey, int]] = []
        self._frames = Frames(1 << 20)

    def send(self, api_key: ApiKey, request: Any, version: int | None = None) -> int:
        """Send a request, in the last version if no other is named; return its size."""
        version = VERSIONS[api_key][-1] if version is None else version
        frame = payload(version, request, self._client_id, len(self._sent))
        self._sent.append((api_key, version))
        self.protocol.dataReceived(b"".join(framed(frame)))
        return len(frame)

    def received(self) -> list[tuple[int, Any]]:
        """The answers that came since the last call: the number of the request, and the response."""
        self._frames.receive(self.transport.value())
        self.transport.clear()
        found = []
        while (frame := self._frames.next_frame()) is not None:
            number = int.from_bytes(frame[:4])
            found.append(decode_response(*self._sent[number], bytes(frame)))
        return found

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.disconnecting)

    def lose(self) -> None:
        """The client goes."""
        self.protocol.connectionLost(Failure(ConnectionLost()))

    # ---- requests

    def create(self, name: str) -> None:
        self.send(
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequest(
                topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),), timeout_ms=1000
            ),
        )

    def beat(self, group: str = "g", member: str = "m") -> None:
        self.send(ApiKey.HEARTBEAT, HeartbeatRequest(group_id=group, generation_id=1, member_id=member))


class World:
    """A broker, and what steers its faults."""

    def __init__(self, **config: Any) -> None:
        self.groups = Groups()
        self.broker = replace(new_broker(**config), groups=self.groups)
        clock: Any = self.broker.clock
        self.plain = partial(answer, self.broker)
        self.shared = Shared(
            answer=self.plain,
            clock=clock,
            rounds=self.broker.rounds,
            unread=self.broker.unread,
            intake=Intake(clock, self.broker.unread, -1),
            once=self.broker.once,
            max_request_bytes=1 << 20,
        )
        addresses = AddressRates(self.broker.cluster.client_quotas, _resolve)
        pace = Pace(no_limits(1), self.broker.config, addresses, clock)
        connections = Connections(clock, Places(no_limits(1), _resolve), pace)
        self._entrance = Entrance(self.shared, connections)
        self.told: list[Any] = []
        self.need_whole = False
        (configured,) = self.broker.config.listener_configs
        listener = BrokerListeners([Listener(configured, self._entrance, clock)], connections)
        self.steering = FaultSteering({1: self.broker}, {1: listener}, partial, self.told.append, self._usual)

    def _usual(self) -> Any:
        return LOCAL._replace(need_whole=partial(setattr, self, "need_whole"))

    def connect(self, client_id: str = "c") -> Peer:
        return Peer(self._entrance, client_id)

    def add(self, **given: Any) -> int:
        """Add a fault; return its number."""
        return int(self.steering.add(given)["number"])

    def counts(self, number: int = 1) -> tuple[int, int]:
        """The numbers of requests that a fault matched, and struck."""
        (found,) = (each for each in self.steering.describe() if each["number"] == number)
        return found["matched"], found["struck"]

    def advance(self, ms: float) -> None:
        advance(self.broker, ms)


def _resolve(host: str) -> Deferred[list[str]]:
    return succeed([host])


def one_of_each(api_key: ApiKey, version: int) -> Any:
    """A request that names one thing of each kind; a Fetch without a session."""
    request = _one(MESSAGES[api_key][0], version)
    if api_key is ApiKey.FETCH:
        return replace(request, session_id=0, session_epoch=-1, forgotten_topics_data=())
    return request


def _one(cls: Any, version: int) -> Any:
    fields = [each for each in definition(cls).fields if each.exists(version)]
    return cls(**{each.name: _value(each.type, each.default, version) for each in fields})


def _value(wire: Any, default: Any, version: int) -> Any:
    if isinstance(wire, type):
        return _one(wire, version)
    element = getattr(wire, "element", None)
    if element is not None:
        one = _value(element, getattr(element, "implicit", None), version)
        return (one,) if isinstance(wire, Array) else one
    if default is None:
        return None
    return {str: "t", int: 7, UUID: UUID(int=7)}.get(type(default), default)
