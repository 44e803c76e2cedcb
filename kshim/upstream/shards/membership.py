"""Decides which process tries to lead which shard: the processes are a group of the upstream, subscribed to
the journal's topic.

Members send heartbeats, and a process that dies leaves the group when its session ends. The assignment only
says which process *tries* to lead a shard. The shard's log decides which one leads it, so a wrong assignment
does no harm. All members get the same assignment, with every process and its shards, so each can answer
clients where a group is coordinated.

kshim uses its own `Link` for this, not a client library. The link has the security of all other connections
to the upstream, the assignment can carry the addresses, and nothing runs on another thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kshim.configs.endpoint import Endpoint
from kshim.storage.clock import TimerClock, after
from kshim.upstream.fellows import Fellow, new_fellow
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link, LinkError
from kshim.upstream.shards.answers import name_of
from kshim.upstream.shards.division import divide
from kshim.upstream.shards.said import (
    Said,
    Unlike,
    decode_said,
    decode_shares,
    differences,
    encode_said,
    encode_shares,
)
from schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from schemas.error_code import ErrorCode
from schemas.message import MalformedMessage
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

logger = logging.getLogger(__name__)

PROTOCOL = "kshim"
HEARTBEAT_S = 0.2
AGAIN_S = 0.25
ANSWER_S = 3.0
LEAVE_S = 1.0
NOBODY = ""
AFRESH = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})
"""The group does not know the member, or not in this generation."""
ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""The coordinator is elsewhere, or not ready."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The shards that each process has to lead."""

    ours: frozenset[int]
    leaders: Mapping[int, Fellow]
    """The process that has to lead each shard."""
    everybody: tuple[Fellow, ...]


@dataclass(frozen=True, slots=True)
class Ours:
    """The facts that this process sends about itself, and the shards that it leads."""

    said: Said
    led: Sequence[int]


class _Again(Exception):
    """Begin anew: the coordinator is elsewhere, or something that may pass has failed."""


class Membership:
    """This process's membership. It joins again until it is stopped."""

    def __init__(
        self,
        reactor: TimerClock,
        upstream: Upstream,
        group_id: str,
        session_timeout_ms: int,
        ours: Callable[[], Ours],
        assigned: Callable[[Assigned], None],
    ) -> None:
        """ours: called for each JoinGroup. assigned: called with each new assignment."""
        self._reactor = reactor
        self._upstream = upstream
        self._group_id = group_id
        self._session_timeout_ms = session_timeout_ms
        self._ours = ours
        self._assigned = assigned
        self.told_silent: frozenset[int] = frozenset()
        """The shards of which this process has told the others that they do not answer it."""
        self._has_news = False
        """True if this process is to join again, to tell the others what has changed."""
        self._member_id = NOBODY
        self._generation_id = -1
        self._link: Link | None = None
        self._running: Deferred[None] | None = None
        self._said: set[str] = set()
        """The lines that were logged since this process last had an assignment; none is repeated."""
        self._warned: set[str] = set()
        """The last warnings about the other members."""

    def start(self) -> None:
        """Join the group, and stay in it."""
        self._running = Deferred.fromCoroutine(self._run())
        self._running.addErrback(_log_unless_stopped)

    def tell(self) -> None:
        """Tell the others soon what this process now says of itself."""
        self._has_news = True

    async def stop(self) -> None:
        """Leave the group, so that the others need not wait for the end of the session."""
        if self._running is not None:
            self._running.cancel()
        link, self._link = self._link, None
        if link is None:
            return
        if self._member_id != NOBODY and link.is_open:
            identity = MemberIdentity(member_id=self._member_id)
            request = LeaveGroupRequest(
                group_id=self._group_id, member_id=self._member_id, members=(identity,)
            )
            try:
                await link.ask(request, timeout_s=LEAVE_S)
            except LinkError as error:
                logger.debug("%s", error)
        link.close()

    # ---- the loop

    async def _run(self) -> None:
        while True:
            try:
                link = await self._coordinator()
                if self._generation_id < 0:
                    await self._join(link)
                await self._stay(link)
            except (LinkError, _Again) as error:
                self._say(logging.INFO, str(error))
            await after(self._reactor, AGAIN_S)

    async def _coordinator(self) -> Link:
        """Return a link to the coordinator. Raises LinkError, _Again."""
        if self._link is not None and self._link.is_open:
            return self._link
        request = FindCoordinatorRequest(key=self._group_id, coordinator_keys=(self._group_id,))
        answer = await self._upstream.ask(request)
        found = answer.coordinators[0] if answer.coordinators else answer
        self._check(found.error_code)
        self._link = await self._upstream.connect(Endpoint(found.host, found.port), ANSWER_S)
        return self._link

    async def _stay(self, link: Link) -> None:
        """Send heartbeats until one fails; join again whenever the group rebalances. Raises LinkError,
        _Again.
        """
        while True:
            await after(self._reactor, HEARTBEAT_S)
            if self._has_news:
                await self._join(link)
                continue
            request = HeartbeatRequest(
                group_id=self._group_id, generation_id=self._generation_id, member_id=self._member_id
            )
            answer = await link.ask(request, timeout_s=ANSWER_S)
            if answer.error_code != ErrorCode.NONE:
                if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                    self._check(answer.error_code)
                await self._join(link)

    async def _join(self, link: Link) -> None:
        """Join until there is an assignment. Raises LinkError, _Again."""
        while True:
            self._generation_id = -1
            joined: JoinGroupResponse = await link.ask(
                self._join_request(), timeout_s=self._session_timeout_ms / 1000 + ANSWER_S
            )
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                continue
            if joined.error_code in AFRESH:
                self._member_id = NOBODY
                continue
            self._check(joined.error_code)
            self._member_id = joined.member_id
            synced: SyncGroupResponse = await link.ask(self._sync_request(joined), timeout_s=ANSWER_S)
            if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            self._check(synced.error_code)
            self._generation_id = joined.generation_id
            self._said.clear()
            self._assigned(self._decoded(synced.assignment))
            return

    def _check(self, code: int) -> None:
        """Raise _Again for an error."""
        if code == ErrorCode.NONE:
            return
        if code in AFRESH:
            self._member_id, self._generation_id = NOBODY, -1
        if code in ELSEWHERE and self._link is not None:
            self._link.close()
        raise _Again(f"group {self._group_id} of the upstream: {name_of(code)}{_ADVICE.get(code, '')}")

    def _say(self, level: int, line: str) -> None:
        logger.log(level if line not in self._said else logging.DEBUG, "%s", line)
        self._said.add(line)

    # ---- messages

    def _join_request(self) -> JoinGroupRequest:
        ours = self._ours()
        self._has_news, self.told_silent = False, frozenset(ours.said.silent)
        topic = ours.said.topic
        subscription = ConsumerProtocolSubscription(
            topics=(topic,),
            user_data=encode_said(ours.said),
            owned_partitions=(TopicPartition(topic=topic, partitions=tuple(ours.led)),),
        )
        protocol = JoinGroupRequestProtocol(name=PROTOCOL, metadata=encode_subscription(subscription))
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._session_timeout_ms,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )

    def _sync_request(self, joined: JoinGroupResponse) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=tuple(self._assignments(joined)),
        )

    def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Divide the shards among all members, if this member leads the group; else return an empty list."""
        if joined.leader != joined.member_id:
            return []
        members, unlike = _members(joined)
        self._warn(unlike)
        shares = {
            member_id: leads
            for topic in {said.topic for said, _ in members.values()}
            for member_id, leads in _divided(members, topic).items()
        }
        user_data = encode_shares([(members[member_id][0], leads) for member_id, leads in shares.items()])
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_assignment(
                    ConsumerProtocolAssignment(
                        assigned_partitions=(
                            TopicPartition(topic=members[member_id][0].topic, partitions=tuple(leads)),
                        ),
                        user_data=user_data,
                    )
                ),
            )
            for member_id, leads in shares.items()
        ]

    def _decoded(self, data: bytes) -> Assigned:
        """Read the assignment of this member. Raises _Again."""
        ours = self._ours().said
        try:
            assigned, everybody = decode_assigned(data, ours.topic)
        except (MalformedMessage, Unlike) as error:
            what = error if isinstance(error, Unlike) else f"an assignment of another make: {error}"
            raise _Again(f"group {self._group_id} of the upstream: {what}") from None
        self._warn(differences(ours, everybody))
        return assigned

    def _warn(self, lines: Iterable[str]) -> None:
        """Log differences between the members, each once for as long as it lasts."""
        found = set(lines)
        for line in sorted(found - self._warned):
            logger.warning("%s", line)
        self._warned = found


def decode_assigned(data: bytes, topic: str) -> tuple[Assigned, list[Said]]:
    """Read a member's assignment; return it, and what all members have sent about themselves.

    topic: members with another topic, and their shards, are left out. Raises MalformedMessage, Unlike.
    """
    assignment = decode_assignment(data)
    shares = decode_shares(assignment.user_data)
    fellows = [
        (new_fellow(said.addresses, said.ports, said.names, said.http), leads)
        for said, leads in shares
        if said.topic == topic
    ]
    leaders = {shard: fellow for fellow, leads in fellows for shard in leads}
    led = frozenset(shard for each in assignment.assigned_partitions for shard in each.partitions)
    assigned = Assigned(led, leaders, tuple(fellow for fellow, _ in fellows))
    return assigned, [said for said, _ in shares]


def _members(joined: JoinGroupResponse) -> tuple[dict[str, tuple[Said, Sequence[int]]], list[str]]:
    """Return what each member sends about itself and which shards it leads, and a line for each that cannot
    be read.
    """
    members: dict[str, tuple[Said, Sequence[int]]] = {}
    unlike = []
    for each in joined.members:
        try:
            subscription = decode_subscription(each.metadata)
            said = decode_said(subscription.user_data)
        except MalformedMessage as error:
            unlike.append(f"member {each.member_id} is no kshim, or another build: {error}")
        except Unlike as error:
            unlike.append(str(error))
        else:
            led = [n for it in subscription.owned_partitions if it.topic == said.topic for n in it.partitions]
            members[each.member_id] = said, led
    return members, unlike


def _divided(members: Mapping[str, tuple[Said, Sequence[int]]], topic: str) -> Mapping[str, Sequence[int]]:
    """Divide the shards of one topic among the members that use it."""
    owned = {member_id: led for member_id, (said, led) in members.items() if said.topic == topic}
    silent = {member_id: members[member_id][0].silent for member_id in owned}
    return divide(max(members[member_id][0].shards for member_id in owned), owned, silent)


_ADVICE: Mapping[int, str] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: ", other clients are members of it: stop them",
    ErrorCode.INVALID_SESSION_TIMEOUT: ": the brokers' group.min.session.timeout.ms forbids it",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ": kshim needs READ on it",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ": kshim needs READ on the topic of its groups",
}


def _log_unless_stopped(failure: Failure) -> None:
    if failure.check(CancelledError) is None:
        logger.error("internal error: %s", failure.getTraceback())
