"""Answers requests while faults are in force, in place of `dispatch.answer`.

Replies leave in the order of the requests, as always. A request that a fault delays counts as in flight like
any other (`Connection`, `Unread`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kshim.callers import Client, Refused, RequestContext
from kshim.faults.fault import Close, Delay, Drop, Error, Fault, Slow, Stall
from kshim.faults.named import Kind
from kshim.faults.rules import Asked, Rule, Rules
from kshim.network.dispatch import (
    API,
    LIGHT_ELEMENTS,
    MAX_ELEMENTS,
    Reply,
)
from kshim.storage.clock import TimerClock
from kshim.turns import Turn
from kshim.turns.aside import Aside
from kshim.turns.promise import Promise, Runnable, run, settled
from kshim.turns.unread import MAX_ANSWER_ELEMENTS, Unread
from schemas.api_key import ApiKey, api_title
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, TooManyElements
from schemas.messages.produce import ProduceRequest
from schemas.pieces import Pieces
from schemas.registry import decode_request, encode_reply

NO_REPLY = 0
"""The acks of a Produce that gets no answer."""


class Struck(NamedTuple):
    """The event that a fault has struck a request."""

    number: int
    fault: Fault
    times: int
    """How many requests the fault has struck, including this one."""
    api: str
    api_version: int
    client: str
    group_id: str
    """The group that the request names; empty if it names none."""

    @property
    def kind(self) -> str:
        """The kind of event for the recorder."""
        return "fault"

    def __str__(self) -> str:
        request = f"{self.api} v{self.api_version} of {self.client}"
        return f"fault {self.number} ({self.fault.action}) strikes {request}"


Report = Callable[[Struck], object]


class Parts(Protocol):
    """The parts of a broker that faults use."""

    @property
    def node_id(self) -> int: ...
    @property
    def aside(self) -> Aside: ...
    @property
    def clock(self) -> TimerClock: ...
    @property
    def unread(self) -> Unread: ...


B = TypeVar("B", bound=Parts)


class Usual(NamedTuple, Generic[B]):
    """How the brokers of a backend answer without faults, and how they refuse requests."""

    answer: Callable[..., Reply | Promise[Reply]]
    """Answers a request, with the arguments and results of `dispatch.answer`."""
    names_in: Callable[[B, ApiKey, object, Kind], Iterator[str]]
    """Returns the names of the groups, topics or members in a request. (broker, api_key, request, kind)"""
    can_be_refused: Callable[[B, ApiKey, int, object, ErrorCode], bool]
    """Returns True if the answer has a place for the error. (broker, api_key, version, request, error)"""
    refused: Callable[[B, RequestContext, ApiKey, object, ErrorCode, str | None], object]
    """Returns, or promises, a response with the error. (broker, context, api_key, request, error, topic)"""
    need_whole: Callable[[bool], object] = lambda _: None
    """Called with True when faults need requests whole from now on, to look into them; else with False."""
    why_never: Callable[[Fault], str] = lambda _: ""
    """Returns why a fault can never strike; empty if it can."""


class Request(NamedTuple, Generic[B]):
    """A request that a fault strikes."""

    broker: B
    frame: bytes | bytearray
    client: Client
    turn: Turn
    header: RequestHeader
    body: object
    rule: Rule
    usual: Usual[B]

    async def perform(self) -> Reply:
        """Answer the request as if there were no fault."""
        decoded = self.header, self.body
        return await settled(self.usual.answer(self.broker, self.frame, self.client, self.turn, decoded))

    async def wait(self, ms: float) -> None:
        """Wait for `ms`."""
        over: Promise[None] = Promise()
        self.broker.clock.callLater(ms / 1000, over.answer_alone, None)
        await over

    def closed(self) -> Refused:
        """Return an exception that closes the request's connection when it is raised."""
        name = api_title(self.header.api_key)
        why = f"{self.client.named(self.header.client_id)}: {name}: fault {self.rule.number}"
        return Refused(why, logging.DEBUG)


class FaultyAnswers(Generic[B]):
    """Answers requests, and applies the faults that strike them."""

    def __init__(self, rules: Rules, report: Report, usual: Usual[B]) -> None:
        self._rules = rules
        self._report = report
        self._usual = usual

    def __call__(
        self, broker: B, frame: bytes | bytearray, client: Client, turn: Turn
    ) -> Reply | Promise[Reply]:
        """Answer a request, like `dispatch.answer`."""
        try:
            decoded = decode_request(frame, LIGHT_ELEMENTS)
        except TooManyElements:
            turn.is_alone = True
            return run(self._answer_large(broker, frame, client, turn))
        except MalformedMessage:
            return self._usual.answer(broker, frame, client, turn)
        return self._answer(broker, frame, client, turn, *decoded)

    async def _answer_large(self, broker: B, frame: bytes | bytearray, client: Client, turn: Turn) -> Reply:
        try:
            decoded = await broker.aside.run(partial(decode_request, frame, MAX_ELEMENTS), client.address)
        except Exception:  # the usual answer says what is wrong with the request
            return await settled(self._usual.answer(broker, frame, client, turn))
        return await settled(self._answer(broker, frame, client, turn, *decoded))

    def _answer(
        self,
        broker: B,
        frame: bytes | bytearray,
        client: Client,
        turn: Turn,
        header: RequestHeader,
        body: object,
    ) -> Reply | Promise[Reply]:
        key = header.api_key
        rule = None
        if key in API:
            api_key, version = ApiKey(key), header.api_version

            def can_carry(fault: Fault) -> bool:
                does = fault.action
                return not isinstance(does, Error) or self._usual.can_be_refused(
                    broker, api_key, version, body, does.code
                )

            asked = Asked(header, body, partial(self._usual.names_in, broker, api_key, body), can_carry)
            rule = self._rules.strike(asked, broker.clock.seconds())
        if rule is None:
            return self._usual.answer(broker, frame, client, turn, (header, body))
        group_id = next(self._usual.names_in(broker, ApiKey(key), body, Kind.GROUP), "")
        sender, version = client.named(header.client_id), header.api_version
        self._report(Struck(rule.number, rule.fault, rule.struck, api_title(key), version, sender, group_id))
        request = Request(broker, frame, client, turn, header, body, rule, self._usual)
        return run(_DOES[type(rule.fault.action)](request, rule.fault.action))


async def _error(request: Request[B], error: Error) -> Reply:
    broker, header, client = request.broker, request.header, request.client
    api_key = ApiKey(header.api_key)
    if isinstance(request.body, ProduceRequest) and request.body.acks == NO_REPLY:
        raise request.closed()  # as Kafka does: without an answer the producer would never learn of the error
    context = RequestContext(
        header.api_version,
        header.client_id or "",
        client.host,
        client.advertised,
        turn=request.turn,
        node_id=broker.node_id,
        client=client,
    )
    response = request.usual.refused(
        broker, context, api_key, request.body, error.code, request.rule.fault.topic
    )
    key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
    return encode_reply(key, version, correlation_id, await settled(response), MAX_ANSWER_ELEMENTS)


async def _delay(request: Request[B], delay: Delay) -> Reply:
    return await _held(request, await request.perform(), delay.ms)


async def _held(request: Request[B], reply: Reply, ms: float) -> Reply:
    """Hold a reply back for `ms`. It is copied, and its bytes are counted as unread meanwhile."""
    if reply is None:
        return None
    held, unread = bytes(reply), request.broker.unread
    unread.bytes += len(held)
    await request.wait(ms)
    unread.bytes -= len(held)
    return held


async def _drop(request: Request[B], _: Drop) -> Reply:
    reply = await request.perform()
    never: Promise[Reply] = Promise()
    return None if reply is None else await never


async def _close(request: Request[B], close: Close) -> Reply:
    if close.performs:
        await request.perform()
    raise request.closed()


async def _stall(request: Request[B], stall: Stall) -> Reply:
    return await _taken_in(request, stall.ms)


async def _slow(request: Request[B], slow: Slow) -> Reply:
    def ms(frame: bytes | bytearray | Pieces) -> float:
        return 1000 * len(frame) / slow.bytes_per_s

    reply = await _taken_in(request, ms(request.frame))
    return await _held(request, reply, ms(reply or b""))


async def _taken_in(request: Request[B], ms: float) -> Reply:
    """Perform a request after `ms`, unless its client has disconnected. Until then, the connection reads no
    further request.
    """
    turn = request.turn
    turn.is_alone = True
    was_large = turn.fired  # a large request's turn fires at once, so it is not parked; see Connection
    await request.wait(ms)
    if turn.fired and not was_large:  # no request is behind it, so only the connection's end can fire it
        raise request.closed()
    turn.fire()  # the request must not be parked: the connection reads nothing before it is answered
    return await request.perform()


_DOES: dict[type, Callable[[Request[Any], Any], Runnable[Reply]]] = {
    Error: _error,
    Delay: _delay,
    Drop: _drop,
    Close: _close,
    Stall: _stall,
    Slow: _slow,
}
