"""One history from its seed: trouble for a number of steps, then quiet, in which all must come right."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kshim.coordination.groups.consumer.requests import Patience
from kshim.coordination.groups.consumer.states import GroupState
from kshim.coordination.groups.states import State
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.simulation.consumer_groups.client import ClassicClient, Client, ConsumerClient, Profile
from tests.simulation.consumer_groups.commits import Commits
from tests.simulation.consumer_groups.world import GROUP, TOPICS, World
from tests.simulation.groups.history import lines
from tests.simulation.outcome import Outcome, outcome_of

STEPS = 150
LONGEST_MS = 90_000
"""How long a group may take to reach its target once nothing goes wrong any more: the longest session, the
longest rebalance, the shortest time between two searches for matches, and some more."""
MOST_CLIENTS = 5
REGEXES = (None, None, None, "f.*", "foo|zar", "[a-z]*")


class Play:
    """The clients of a history, and what happens to them."""

    def __init__(self, seed: int, *, commits: bool = True) -> None:
        self.world = World(seed)
        self.commits = Commits(self.world)
        self._table = _TABLE | ({Play._commits: 6, Play._fetches: 3} if commits else {})
        self.chance = self.world.chance
        self.classic = self.chance.choice((0, 0.3, 0.3, 0.6))
        self.clients: list[Client] = []
        for _ in range(self.chance.randint(2, 4)):
            self._arrives()

    def trouble(self) -> None:
        """One thing happens, by chance."""
        happen, weights = zip(*self._table.items(), strict=True)
        self.chance.choices(happen, weights)[0](self)

    def step(self) -> bool:
        went_on = self.world.clock.step()
        self.world.counts["steps"] += 1
        self.commits.are_kept()
        self.world.checks.held(self.world.shard, self.world.topics, self.live())
        return went_on

    def live(self) -> list[Client]:
        return [client for client in self.clients if client.is_alive]

    # ---- what happens

    def _arrives(self, profile: Profile | None = None, delay_ms: int | None = None) -> None:
        if len(self.live()) >= MOST_CLIENTS:
            return
        choice = self.chance.choice
        profile = profile or Profile(
            self.chance.random() < self.classic,
            choice((None, None, None, "static0", "static1")),
            choice((True, False)),
            choice(tuple(Patience)),
        )
        kind = ClassicClient if profile.is_classic else ConsumerClient
        client = kind(self.world, f"c{len(self.clients)}", profile)
        self.clients.append(client)
        self.world.note(client.name, "starts", str(profile))
        self._subscribes(client)
        client.wake_in(self.chance.randint(0, 3_000) if delay_ms is None else delay_ms)

    def _subscribes(self, client: Client | None = None) -> None:
        client = client or self._anyone()
        if client is not None:
            names = self.chance.sample(TOPICS, self.chance.randint(0, 3))
            client.subscribe(names, self.chance.choice(REGEXES))

    def _changes_protocol(self) -> None:
        """A client goes, and comes back with the other protocol."""
        client = self._anyone()
        if client is not None:
            old = client.profile
            self._leaves(client)
            self._arrives(Profile(not old.is_classic, old.instance_id, old.is_cooperative, old.patience))

    def _leaves(self, client: Client | None = None) -> None:
        client = client or self._anyone()
        if isinstance(client, ConsumerClient | ClassicClient):
            client.leave(goes_away=self.chance.random() < 0.6)

    def _comes_back(self) -> None:
        """A client goes, and is started again."""
        client = self._anyone()
        if client is not None:
            self._leaves(client)
            self._arrives(client.profile, self.chance.choice((0, 500, 12_000)))

    def _is_gone(self) -> None:
        client = self._anyone()
        if client is not None:
            client.end()

    def _stalls(self) -> None:
        client = self._anyone()
        if client is not None:
            self.world.note(client.name, "stalls")
            client.stalled_until_ms = self.world.clock.now_ms + self.chance.choice((500, 9_000, 20_000))

    def _loses_answer(self) -> None:
        client = self._anyone()
        if client is not None:
            self.world.note(client.name, "is disconnected")
            client.lose_answer()

    def _crashes(self) -> None:
        self.world.crash()
        for client in self.live():
            client.lose_answer()

    def _topic_changes(self) -> None:
        name, topics = self.chance.choice(TOPICS), self.world.topics
        topic = topics.named(name)
        if topic is None:
            if any(client.profile.is_classic for client in self.live()):
                return  # they know topics by name alone, and would take it for the one that is deleted
            topics.create(name, self.chance.randint(1, 4))
        elif self.chance.random() < 0.3:
            del topics.by_name[name]
        else:
            topics.by_name[name] = topic._replace(partitions=topic.partitions + 1)
        self.world.note("admin", "changes", name)
        self.world.topic_changed(name)

    def _are_removed(self) -> None:
        identities = tuple(MemberIdentity(group_instance_id=name) for name in ("static0", "static1"))
        request = LeaveGroupRequest(group_id=GROUP, members=identities)
        self.world.ask(5, "admin", request, lambda answer: None)

    def _commits(self) -> None:
        client = self._anyone()
        if client is not None:
            self.commits.commit(client)

    def _fetches(self) -> None:
        client = self._anyone()
        if client is not None:
            self.commits.fetch(client)

    def _anyone(self) -> Client | None:
        live = self.live()
        return self.chance.choice(live) if live else None

    # ---- in the end all is well

    def settles(self) -> None:
        """Once nothing goes wrong any more, every member that lives has its target, and all partitions have
        an owner."""
        world = self.world
        world.note("all", "is quiet")
        world.slowest_ms = 0
        until_ms = world.clock.now_ms + LONGEST_MS
        for client in self.live():
            client.stalled_until_ms = 0
        quiet_ms = world.clock.now_ms
        while world.clock.now_ms < until_ms:
            if not self.step():
                break
            if world.clock.now_ms > quiet_ms + 1_000 and not self._missing():
                return
        assert not self._missing(), self._missing()

    def _missing(self) -> str:
        """Why the group is not settled; empty if it is."""
        shard, live = self.world.shard, self.live()
        group, classic = shard.consumer.groups.get(GROUP), shard.groups.get(GROUP)
        ids = {client.member_id for client in live}
        if not live:
            return "" if not (group and group.members) and not (classic and classic.members) else "not empty"
        if classic is not None:
            return self._missing_in_classic(classic, live)
        if group is None or group.state is not GroupState.STABLE or group.members.keys() != ids:
            return "no group" if group is None else f"{group.state} with {list(group.members.values())}"
        exist = self._existing()
        for client in live:
            target = group.target_of(group.members[client.member_id])
            wanted = {(topic_id, each) for topic_id, those in target.items() for each in those}
            if any(topic_id in exist for topic_id, _ in client.owned ^ wanted):
                return f"{client.name} has {client.owned}, and is to have {target}"
        named = {name for client in live for name in client.names}
        named |= {name for name in TOPICS if name in group.subscribed_topics()}
        return self._missing_of(live, named)

    def _missing_in_classic(self, classic: Any, live: list[Client]) -> str:
        if classic.state is not State.STABLE or classic.members.keys() != {each.member_id for each in live}:
            return f"{classic.state} with {list(classic.members)}"
        if any(client.epoch != classic.generation for client in live):
            return "some are of another generation"
        exist = self._existing()
        for client in live:
            wanted = client.read(classic.members[client.member_id].assignment)
            if any(topic_id in exist for topic_id, _ in client.owned ^ wanted):
                return f"{client.name} has {client.owned}, and the group says {wanted}"
        leader = next(each for each in live if each.member_id == classic.leader)
        assert isinstance(leader, ClassicClient)
        if leader.planned_for is not None:
            return "" if leader.planned_for == leader.partitions() else f"{leader.name} makes no plan"
        if leader.follows:
            return ""  # it has taken the place of a static leader, and makes no plan until it joins again
        return self._missing_of(live, {name for client in live for name in client.names})

    def _existing(self) -> set[UUID]:
        return {topic.topic_id for topic in self.world.topics.by_name.values()}

    def _missing_of(self, live: list[Client], named: set[str]) -> str:
        """The reason why the members do not have each partition of these topics once; empty if they do."""
        exist = self._existing()
        wanted = {
            (topic.topic_id, partition)
            for topic in self.world.topics.by_name.values()
            if topic.name in named
            for partition in range(topic.partitions)
        }
        found = sorted(each for client in live for each in client.owned if each[0] in exist)
        return "" if found == sorted(wanted) else f"{found} are owned, and not {wanted}"


def run(seed: int, steps: int = STEPS, *, tell: bool = False, commits: bool = True) -> Outcome:
    """Run `steps` steps in the world of `seed`, and then let it come to rest.

    commits: False for a history in which nobody commits.
    """
    it = Play(seed, commits=commits)
    trouble = it.chance.choice((0.05, 0.15, 0.4))

    def play() -> None:
        for _ in range(steps):
            if it.chance.random() < trouble:
                it.trouble()
            if not it.step():
                it._arrives()
        it.settles()

    return outcome_of(seed, play, lambda: it.world.counts, lambda: lines(it.world.happened), tell=tell)


_TABLE = {
    Play._arrives: 5,
    Play._subscribes: 3,
    Play._changes_protocol: 2,
    Play._leaves: 2,
    Play._comes_back: 3,
    Play._is_gone: 2,
    Play._stalls: 3,
    Play._loses_answer: 4,
    Play._crashes: 2,
    Play._topic_changes: 3,
    Play._are_removed: 0.5,
}
