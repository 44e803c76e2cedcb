"""The world of one history: brokers, the journal they share, consumers, and the network in between.

A step is one event: a request or an answer arrives, an append settles, a deadline comes, a consumer acts.
After each step the checks look at every broker that took part in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.states import State
from kshim.storage.interfaces import StorageError
from kshim.turns import Turn
from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.records.end_txn_marker import EndTxnMarker
from tests.simulation.groups.checks import Checks
from tests.simulation.groups.client import PARTITIONS, Client, Phase, Profile
from tests.simulation.groups.clock import START_MS, SimulatedClock
from tests.simulation.groups.history import Happened
from tests.simulation.groups.journal import SimulatedJournal
from tests.simulation.groups.node import Node, WatchedCoordinator
from tests.simulation.groups.transactor import Transactor

GROUPS = ("one", "two")
SHARDS = 2
NODES = 2
LONGEST_MS = 600_000
"""How long a group may take to settle once nothing goes wrong any more: twice the longest wait of a first
JoinGroup."""
STEADY_MS = 7_000
"""How long a settled group is watched: longer than the shortest session."""
MOST_EVENTS = 20_000
ASSIGNORS = (
    ("range",),
    ("range", "sticky"),
    ("sticky", "range"),
    ("roundrobin", "range", "sticky"),
    ("sticky",),
)


@dataclass(eq=False)
class Connection:
    """From a client to a node; requests arrive in the order in which they were sent."""

    node: Node
    arrives_ms: int = 0
    is_open: bool = True
    turn: Turn = field(default_factory=Turn)
    """Of the last request that has arrived."""


class World:
    """The world of one seed."""

    def __init__(self, seed: int, *, parks: bool) -> None:
        """parks: whether the brokers park heartbeats."""
        self.parks = parks
        self.chance = chance = Random(seed)
        self.clock = SimulatedClock()
        self.checks = Checks()
        self.journal = SimulatedJournal(self.clock, chance, self.checks.journaled)
        self.happened: list[Happened] = []
        self.clients: list[Client] = []
        self.transactors: list[Transactor] = []
        self.old: list[tuple[Client, Any, int]] = []
        """The requests that were sent: client, request, version."""
        self.broker_crashes = 0
        self.client_crashes = 0
        self.moves = 0
        self.requests = 0
        self.steps = 0
        self.slowest_ms = chance.choice((1, 10, 100))
        self._ids = 0
        self._calm_ms = 0
        self._settings = Settings(
            group_initial_rebalance_delay_ms=chance.choice((0, 500, 3_000)),
            group_max_size=chance.choice((3, 1_000, 1_000, 1_000)),
            offsets_retention_minutes=chance.choice((1, 10_080, 10_080)),
            offsets_retention_check_interval_ms=7_000,
        )
        self._broken: list[Failure] = []
        self.nodes = [self._new_node(f"broker{n}") for n in range(NODES)]
        self.leaders: dict[int, Node | None] = dict.fromkeys(range(SHARDS))
        self._elections = [0] * SHARDS
        for shard in range(SHARDS):
            self.elect(shard, 0)
        for _ in range(chance.randint(2, 5)):
            self.newcomer()
        for producer_id in range(1, chance.choice((1, 2, 3)) + 1):
            self._new_transactor(producer_id)

    # ---- what happens

    def step(self) -> bool:
        """Make one event happen and check its effects; False if no event is left."""
        self.steps += 1
        went_on = self.clock.step()
        self.look()
        return went_on

    def look(self) -> None:
        """Check that the last event left everything as it must be. Raises AssertionError, and any error it
        finds."""
        for settled in self.journal.fired:
            settled.addErrback(self._broken.append)
        self.journal.fired.clear()
        for failure in self._broken:
            failure.raiseException()
        for node in self.nodes:
            if node.is_touched:
                self.checks.stepped(node)
        for shard, leader in self.leaders.items():
            if leader is not None and not leader.leads(shard):
                leader.resign(shard)  # it would load the shard again by itself
                self.elect(shard, 500)

    def note(self, who: str, what: str, detail: Any = None) -> None:
        self.happened.append((self.clock.now_ms - START_MS, who, what, detail))

    # ---- consumers

    def newcomer(self, profile: Profile | None = None, delay_ms: int | None = None) -> Client:
        """Add a consumer that has never joined."""
        client = Client(self, f"c{len(self.clients)}", profile or self.new_profile())
        self.clients.append(client)
        self.note(client.name, "starts", client.profile)
        client.wake_in(self.chance.randint(0, 4_000) if delay_ms is None else delay_ms)
        return client

    def new_profile(self) -> Profile:
        choice = self.chance.choice
        instance = choice((None, None, "static0", "static1"))
        return Profile(
            group_id=choice(GROUPS),
            group_instance_id=instance,
            assignors=choice(ASSIGNORS[:4]) if self.chance.random() < 0.95 else ASSIGNORS[4],
            session_timeout_ms=choice((6_000, 10_000, 30_000)),
            rebalance_timeout_ms=choice((2_000, 5_000, 20_000, 60_000)),
            join_version=choice((5, 9, 9)) if instance else choice((2, 4, 9, 9)),
        )

    def _new_transactor(self, producer_id: int) -> None:
        """Add a producer that commits some group's offsets in transactions."""
        group_id, bumps = self.chance.choice(GROUPS), self.chance.random() < 0.5
        transactor = Transactor(self, f"p{producer_id}", group_id, producer_id, bumps)
        self.transactors.append(transactor)
        self.clock.after(self.chance.randint(0, 4_000), transactor.act)

    def end(self, client: Client) -> None:
        """The consumer is gone, without telling anybody."""
        self.note(client.name, "is gone")
        client.phase = Phase.GONE
        self.disconnect(client)

    def live(self, group_id: str | None = None) -> list[Client]:
        return [
            client
            for client in self.clients
            if client.is_alive and group_id in (None, client.profile.group_id)
        ]

    # ---- network

    def connect(self, client: Client) -> Connection | None:
        """Connect to the coordinator of the client's group; at times, to a wrong one."""
        node = self.leaders[self.shard_for(client.profile.group_id)]
        if self.chance.random() < 0.03:
            node = self.chance.choice(self.nodes)
        return None if node is None or not node.is_alive else Connection(node)

    def disconnect(self, client: Client) -> None:
        if client.connection is not None:
            client.connection.is_open = False
            client.connection.turn.fire()
        client.disconnected()

    def send(self, client: Client, connection: Connection | None, request: Any, version: int) -> None:
        if connection is None:
            return
        self.note(client.name, f"asks {connection.node.name}", request)
        self.old.append((client, request, version))
        arrives_ms = max(self.clock.now_ms + self.chance.randint(0, self.slowest_ms), connection.arrives_ms)
        connection.arrives_ms = arrives_ms
        delay_ms = arrives_ms - self.clock.now_ms
        self.clock.after(delay_ms, self._arrive, client, connection, request, version)

    def _arrive(self, client: Client, connection: Connection, request: Any, version: int) -> None:
        """A request sent before its connection was lost may still be carried out; a commit is not, because it
        might arrive after a later one."""
        if connection.is_open or type(request) is not OffsetCommitRequest:
            self.submit(connection.node, client.name, request, version, client, connection)

    def submit_to_leader(self, group_id: str, client_id: str, request: Any, version: int) -> None:
        """Give a request to the leader of the group's shard, if there is one; nobody hears the answer."""
        leader = self.leaders[self.shard_for(group_id)]
        if leader is not None:
            self.note(client_id, f"asks {leader.name}", request)
            self.submit(leader, client_id, request, version)

    def end_transaction(self, transactor: Transactor, marker: EndTxnMarker) -> None:
        """Give a marker to the leader of the shard of the transactor's group, if there is one."""
        shard = self.shard_for(transactor.group_id)
        node = self.leaders[shard]
        if node is None:
            return
        self.requests += 1
        self.note(transactor.name, f"ends it at {node.name}", marker)

        def answered(answer: Any) -> None:
            if node.is_alive:
                self.note(node.name, f"answers {transactor.name}", ErrorCode(answer).name)
                self.checks.ended(shard, marker, answer)
                transactor.ended(marker, answer)

        node.write_marker(shard, marker).addCallback(answered).addErrback(self._broken.append)

    def submit(
        self,
        node: Node,
        client_id: str,
        request: Any,
        version: int,
        client: Client | None = None,
        connection: Connection | None = None,
    ) -> None:
        """Give `node` a request; without a client nobody hears the answer."""
        if not node.is_alive:
            return
        self.requests += 1
        turn = Turn()
        if connection is not None and connection.is_open:
            connection.turn.fire()
            connection.turn = turn
        answer = node.submit(client_id, version, request, turn)
        if isinstance(answer, Deferred):
            answer.addCallback(self._answered, node, client_id, request, client, connection)
            answer.addErrback(self._broken.append)
        else:
            self._answered(answer, node, client_id, request, client, connection)

    def _answered(
        self,
        answer: Any,
        node: Node,
        client_id: str,
        request: Any,
        client: Client | None,
        connection: Connection | None,
    ) -> None:
        if not node.is_alive:
            return
        self.note(node.name, f"answers {client_id}", answer)
        self.checks.answered(request, answer)
        if client is not None and connection is not None and connection.is_open:
            delay_ms = self.chance.randint(0, self.slowest_ms)
            self.clock.after(delay_ms, client.hear, connection, request, answer)

    # ---- brokers

    def shard_for(self, group_id: str) -> int:
        return self.nodes[0].coordinator.shard_for(group_id)

    def elect(self, shard: int, delay_ms: int) -> None:
        """`shard` has no leader now; after `delay_ms` some broker becomes its leader, and loads it."""
        self.leaders[shard] = None
        self._elections[shard] += 1
        self.clock.after(delay_ms, self._begin_to_lead, shard, self._elections[shard])

    def _begin_to_lead(self, shard: int, election: int) -> None:
        node = self.chance.choice(self.nodes)
        if election != self._elections[shard]:
            return
        node.begin_to_lead(shard)
        self.note(node.name, f"loads shard {shard}")
        self.leaders[shard] = None
        self.clock.after(self.chance.choice((0, 0, 300)), self._lead, shard, node, election)

    def _lead(self, shard: int, node: Node, election: int) -> None:
        if election != self._elections[shard]:
            return
        if not node.is_alive:
            self.elect(shard, 0)
            return
        try:
            node.lead(shard, election)
        except StorageError:
            self.elect(shard, 500)
            return
        self.note(node.name, f"leads shard {shard}")
        self.leaders[shard] = node

    def move(self, shard: int) -> None:
        """Its leader gives `shard` up, and another one is elected."""
        leader = self.leaders[shard]
        if leader is None:
            return
        self.moves += 1
        self.note(leader.name, f"resigns from shard {shard}")
        leader.resign(shard)
        self.elect(shard, self.chance.choice((0, 100, 2_000)))

    def crash(self, node: Node) -> None:
        """A broker dies with all that it had in memory; one with its name starts at once, and leads nothing
        yet."""
        self.broker_crashes += 1
        self.note(node.name, "crashes")
        led = [shard for shard in range(SHARDS) if node.leads(shard)]
        node.crash(led)
        self.nodes[self.nodes.index(node)] = self._new_node(node.name)
        for shard in led:
            self.elect(shard, self.chance.choice((0, 1_000, 10_000)))
        for client in self.live():
            if client.connection is not None and client.connection.node is node:
                self.disconnect(client)

    def _new_node(self, name: str) -> Node:
        coordinator = WatchedCoordinator(self._settings, self._new_member_id, SHARDS)
        return Node(name, coordinator, self.journal, self.clock, self.checks, parks=self.parks)

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    # ---- in the end all is well

    def settles(self) -> None:
        """Once nothing goes wrong any more, every group becomes stable with its live members, or empty.

        It stays so; and when its members have left, it is empty.
        """
        self.note("all", "is calm")
        self._calm_ms = self.clock.now_ms
        self.journal.slowest_ms = self.journal.failing = self.journal.unreadable = 0
        for group_id in GROUPS:
            self.newcomer(Profile(group_id, None, ("range", "sticky"), 6_000, 5_000, 9), 0)
        self._wait_until(self._is_settled, "some group does not settle")
        self._stays_settled()
        for transactor in self.transactors:
            transactor.retire()
        self._wait_until(self._nothing_is_pending, "some transaction does not end")
        for client in self.live():
            self.end(client)
        self._wait_until(self._is_empty, "some group does not become empty")
        for shard, leader in self.leaders.items():
            assert leader is not None
            leader.end_turn()
            self.checks.shard_knows_what_is_durable(leader, shard)

    def _wait_until(self, done: Any, otherwise: str) -> None:
        until_ms = self.clock.now_ms + LONGEST_MS
        for event in range(MOST_EVENTS):
            if event % 5 == 0 and done():
                return
            if not self.step() or self.clock.now_ms >= until_ms:
                break
        assert done(), otherwise

    def _stays_settled(self) -> None:
        """No rebalance comes late, and none begins."""
        until_ms = self.clock.now_ms + STEADY_MS
        generations = self._generations()
        while self.clock.now_ms < until_ms and self.step():
            assert self._generations() == generations, "a group rebalances without a cause"

    def _generations(self) -> dict[str, int]:
        """The generation of each group that has members; other groups may expire."""
        groups = [group for node in self.nodes for group in node.groups().values()]
        return {group.group_id: group.generation for group in groups if group.members}

    def _is_settled(self) -> bool:
        at_ms = self.clock.now_ms
        if at_ms < self._calm_ms + STEADY_MS or any(
            client.stalled_until_ms > at_ms for client in self.live()
        ):
            return False
        return all(map(self._group_is_settled, GROUPS)) and self._nobody_waits()

    def _group_is_settled(self, group_id: str) -> bool:
        leader = self.leaders[self.shard_for(group_id)]
        live = self.live(group_id)
        if leader is None or any(client.phase is not Phase.RUN for client in live):
            return False
        if any(client.connection is None or client.connection.node is not leader for client in live):
            return False
        group = leader.groups().get(group_id)
        if not live:
            return group is None or group.state is State.EMPTY
        if group is None or group.state is not State.STABLE:
            return False
        owned = sorted(partition for client in live for partition in client.position)
        return (
            {(client.member_id, client.generation_id) for client in live}
            == {(member_id, group.generation) for member_id in group.members}
            and not group.pending_join
            and not group.pending_sync
            and owned == list(range(PARTITIONS))
        )

    def _nothing_is_pending(self) -> bool:
        shards = [shard for node in self.nodes for shard in node.coordinator._shards.values()]
        return all(transactor.is_at_rest for transactor in self.transactors) and not any(
            shard.hard_state.pending for shard in shards
        )

    def _is_empty(self) -> bool:
        groups = [group for node in self.nodes for group in node.groups().values()]
        return self._nobody_waits() and all(
            group.state is State.EMPTY and not group.pending_join for group in groups
        )

    def _nobody_waits(self) -> bool:
        return None not in self.leaders.values() and not any(node.unanswered for node in self.nodes)
