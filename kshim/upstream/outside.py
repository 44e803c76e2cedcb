"""The control socket, the page and the metrics of kshim in front of an upstream.

Brokers, leaders and records belong to the upstream, so no command stops or moves them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kshim.answering import error_answers
from kshim.callers import Client, RequestContext
from kshim.configs.endpoint import Endpoint
from kshim.control.clock import SteeredClock
from kshim.control.commands import Command, Commands, MadeLater
from kshim.control.socket import ControlSocket, control_path
from kshim.coordination.group_runtime import GroupRuntime
from kshim.network.connection import Measured
from kshim.network.listeners import BrokerListeners
from kshim.recorder.recorder import Recorder
from kshim.storage.interfaces import Activity
from kshim.turns import Turn
from kshim.turns.slices import Slices
from kshim.upstream.ends import Ends
from kshim.upstream.here import HERE, Here
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import LinkError
from kshim.upstream.relay import Relays
from kshim.upstream.topics import Topics
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.registry import VERSIONS

if TYPE_CHECKING:
    from kshim.control.time import TimeSteering
    from kshim.faults.answers import Usual
    from kshim.faults.fault import Fault
    from kshim.http.listener import HttpListener
    from kshim.network.traffic import Traffic
    from kshim.storage.reactor import Reactor

logger = logging.getLogger(__name__)

INNER = frozenset({ApiKey.FETCH, ApiKey.METADATA})
"""APIs whose answers have topics and partitions that only the upstream knows."""
GROUP_US = 30
PATIENCE_S = 2.0
"""How long the page waits for the ends of partitions; then it shows the last known ones."""


@dataclass(slots=True, kw_only=True)
class Outside:
    """Opened before the server is ready, closed before all else."""

    here: Here
    merged: Here
    """Like `here`, but with the groups of both sides."""
    upstream_groups: UpstreamGroups
    ends: Ends
    topics: Topics
    groups: GroupRuntime
    answer: Callable[..., Any]
    """`Front.answer`."""
    relays: Relays
    brokers: Mapping[int, Here]
    listeners: Mapping[int, BrokerListeners]
    measured: Measured
    traffic: Traffic | None
    recorder: Recorder
    clock: SteeredClock
    reactor: Reactor
    upstream: Upstream
    why_not_ready: Callable[[], str]
    notice: Callable[[str], str]
    """Returns a warning about a group, or an empty string; see `Facts`."""
    http_address: Endpoint | None = None
    """The page's address; None if it is not served."""
    _control: ControlSocket | None = None
    _http: HttpListener | None = None
    _time: TimeSteering | None = None

    def open(self) -> None:
        """Open the control socket and the HTTP listener. Raises CannotListen."""
        config = self.here.config
        commands = MadeLater(self._commands)
        path = control_path(config)
        if path is not None:
            self._control = ControlSocket(path, commands, self.reactor)
            self._control.open()
        if config.http_listener is not None:
            self._http = self._new_http(commands if config.http_steering_enable else {})
            self.http_address = self._http.open(config.http_listener)

    async def close(self) -> None:
        """Close both. Returns when nobody is connected any more."""
        if self._http is not None:
            await self._http.close()
        if self._control is not None:
            await self._control.close()
        if self._time is not None:
            self._time.stop()

    def _commands(self) -> Commands:
        from kshim.control.coordinators import Coordinators
        from kshim.control.faults import FaultSteering
        from kshim.control.groups import GroupSteering
        from kshim.control.members import MemberSteering
        from kshim.control.overview import Overview
        from kshim.control.recorder import Questions
        from kshim.control.time import TimeSteering
        from kshim.upstream.adoption import Adoption
        from kshim.upstream.elsewhere import with_other_side
        from kshim.upstream.offset_steering import UpstreamOffsetSteering

        here, recorder, reactor, clock = self.here, self.recorder, self.reactor, self.clock
        groups, coordinators = GroupSteering(here.groups), Coordinators(here, lambda _: HERE)
        questions = Questions(recorder, groups, here.aside, here.rounds, reactor, clock).commands()
        deletion = MemberSteering(Coordinators(self.merged, lambda _: HERE)).commands()["delete-group"]
        overview = Overview(here.cluster, here.groups, self.ends, recorder, here.aside, here.rounds, clock)
        self._time = TimeSteering(clock, reactor, self.groups, self.groups, self._clients)
        faults = FaultSteering(
            self.brokers, self.listeners, self.measured, recorder.add, self._usual, _why_never
        )
        return {
            **groups.commands(),
            **{name: self._after_look(command) for name, command in overview.commands().items()},
            **questions,
            "why": with_other_side(questions["why"], self.upstream_groups),
            **MemberSteering(coordinators).commands(),
            "delete-group": deletion,
            **UpstreamOffsetSteering(
                here.cluster, here.groups, coordinators, self.topics, self.ends
            ).commands(),
            **Adoption(self.upstream, coordinators).commands(),
            **faults.commands(),
            **self._time.commands(),
        }

    def _after_look(self, command: Command) -> Command:
        """Wrap a command, so that it first asks for the current ends of partitions."""

        async def run(*arguments: object) -> object:
            await self._look_now()
            return await maybeDeferred(command.run, *arguments)

        return Command(run, command.types)

    def _look_for_a_while(self) -> Deferred[None]:
        """Ask for the ends of partitions. Fires when they are known, after PATIENCE_S at the latest."""
        over: Deferred[None] = Deferred()
        enough = self.reactor.callLater(PATIENCE_S, over.callback, None)

        def looked(_: object) -> None:
            if enough.active():
                enough.cancel()
                over.callback(None)

        Deferred.fromCoroutine(self._look_now()).addErrback(_log_fault).addCallback(looked)
        return over

    async def _look_now(self) -> None:
        await self._learn_topics()
        await self.ends.look()

    async def _learn_topics(self) -> None:
        """Learn the topics for which groups have committed. After a start, no client has named them yet."""
        slices, names = Slices(self.here.rounds, Turn()), set()
        for group_id in self.here.groups.group_ids():
            await slices.spend(GROUP_US)
            group = self.here.groups.see(group_id)
            names |= {name for name, _ in group.partitions} if group is not None else set()
        missing = self.topics.missing(names)
        if missing:
            with suppress(LinkError):  # the upstream is gone for now
                await self.topics.learn(missing)

    def _usual(self) -> Usual[Here]:
        from kshim.faults.answers import Usual
        from kshim.faults.refusals import names_in

        return Usual(
            self.answer,
            lambda broker, *asked: names_in(broker.cluster, *asked),
            lambda _, *asked: _can_be_refused(*asked),
            _refused,
            self._need_whole,
        )

    def _need_whole(self, need_whole: bool) -> None:
        self.relays.need_whole = need_whole

    def _clients(self) -> list[Client]:
        return [client for listeners in self.listeners.values() for client in listeners.clients()]

    def _new_http(self, commands: Commands) -> HttpListener:
        from kshim.http.facts import Facts
        from kshim.http.listener import HttpListener

        here = self.here
        assert self.traffic is not None
        facts = Facts(
            cluster=here.cluster,
            groups=here.groups,
            ends=self.ends,
            listeners=self.listeners,
            clock=self.reactor,
            rounds=here.rounds,
            wall_clock=self.clock,
            aside=here.aside,
            unread=here.unread,
            traffic=self.traffic,
            recorder=self.recorder,
            quotas={},
            activity=Activity,
            why_not_ready=self.why_not_ready,
            look=self._look_for_a_while,
            notice=self.notice,
            commands=commands,
        )
        return HttpListener(facts, here.config.http_token, self.reactor)


def _log_fault(failure: Failure) -> None:
    logger.error("a fault of ours: %s", failure.getTraceback())


def _why_never(fault: Fault) -> str:
    """Return why a fault can never strike: its error belongs to topics or partitions that only the upstream
    knows. Empty if it can.
    """
    from kshim.faults.fault import Error

    if not isinstance(fault.action, Error) or fault.api not in INNER:
        return ""
    if any(error_answers.is_at_top(fault.api, version, fault.action.code) for version in VERSIONS[fault.api]):
        return ""
    return (
        f"{fault.action.code.name} stands at partitions or topics in the answer to {fault.api.title}, "
        f"which only the upstream knows; expected --delay-ms, --drop, --close, --stall-ms or --bytes-per-s"
    )


def _can_be_refused(api_key: ApiKey, version: int, request: object, error: ErrorCode) -> bool:
    """True if kshim can build the answer to a request with this error. It cannot if the error belongs to the
    partitions of a Fetch or the topics of a Metadata, which only the upstream knows.
    """
    if api_key in INNER and not error_answers.is_at_top(api_key, version, error):
        return False
    return error_answers.has_place(api_key, version, request, error)


def _refused(
    broker: Here,
    context: RequestContext,
    api_key: ApiKey,
    request: object,
    error: ErrorCode,
    topic: str | None,
) -> object:
    """Return the response with an error that `_can_be_refused` allows."""
    return error_answers.answer(api_key, context.api_version, request, error)
