"""Two kshim in front of one Apache Kafka share its groups: one is killed or stopped, the other goes on."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server, run_to_end
from integration.support.story import telling
from integration.upstream.committer import FETCH, Committer, fetch_request, read_of
from kshim.testing.wire import Wire
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

SESSION_S = 6.0
CLIENTS_WAIT_S = 60
"""kafka-python waits 30 s for the answer of a process that sleeps."""
PARTITIONS = 4
METADATA = 9
SHARDS = 50
SLEEPING_GROUPS = 6
WOULD_TELL_S = 5.0
"""The upstream hears of commits after a second."""


@pytest.fixture
def pair(kafka: Server, tmp_path: Path) -> Iterator[list[Server]]:
    """Two kshim that share the groups."""
    options = ["--upstream", kafka.bootstrap]
    servers = [Server(tmp_path / f"kshim{number}", options) for number in (1, 2)]
    for server in servers:
        server.start()
    wait_until(lambda: all(_leads(server) == 25 for server in servers), 20, "each leads a half")
    yield servers
    for server in servers:
        if server.running:
            server.process.send_signal(signal.SIGCONT)
            server.kill()


@pytest.fixture
def committer(kafka: Server, pair: list[Server], topic: str) -> Iterator[Committer]:
    """Commits in one partition."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    admin.close()
    committer = Committer(pair, f"group-of-{topic}", topic)
    yield committer
    assert committer.faults == []


def _leads(server: Server) -> int:
    lines = [line for line in server.log if " of 50 shards of __kshim_groups" in line]
    return int(lines[-1].split("will lead ")[1].split()[0]) if lines else 0


def other(pair: list[Server], than: Server) -> Server:
    (found,) = (server for server in pair if server is not than)
    return found


def leader_of(committer: Committer) -> Server:
    """The kshim that coordinates the group; its first commit is acknowledged."""
    wait_until(lambda: committer.commit(0), 20, "a commit")
    leader = committer.leader()
    assert leader is not None
    return leader


@pytest.mark.parametrize("ends", ["kill", "stop"])
def test_the_other_one_goes_on_where_one_ends(
    pair: list[Server], committer: Committer, ends: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a kill within the upstream's session and a second; at once if it stops in order."""
    leader = leader_of(committer)
    for offset in range(1, 200):
        assert committer.commit(offset)
    begun = time.monotonic()
    leader.kill() if ends == "kill" else leader.stop()
    assert committer.read() is None or ends == "stop"
    wait_until(lambda: committer.commit(200), 30, lambda: f"a commit\n{other(pair, leader).report()}")
    gap_s = time.monotonic() - begun
    with capsys.disabled():
        print(f"\n{ends}: no commit for {gap_s:.2f} s")
    assert committer.read() == 200
    assert gap_s < (SESSION_S + 1 if ends == "kill" else 3)


def test_a_kshim_that_has_just_come_back_announces_the_others_at_once(pair: list[Server], topic: str) -> None:
    """Before its group has balanced again, which takes as long as the session of its predecessor. Else
    clients forget the others, and librdkafka now and then waits for ever for one that it has forgotten.
    """
    gone, _ = pair
    gone.kill()
    with ThreadPoolExecutor() as threads:
        coming = threads.submit(gone.restart)
        ports = wait_until(lambda: _told_ports(gone, topic), 10, "it answers")
        has_balanced = coming.done()
        coming.result()
    assert not has_balanced
    assert ports == {each.port for each in pair}


def _told_ports(server: Server, topic: str) -> set[int]:
    """The ports of the brokers in a server's Metadata answer; none if the server cannot be reached."""
    try:
        with Wire(server.host, server.port) as wire:
            answer = wire.ask(METADATA, MetadataRequest(topics=(MetadataRequestTopic(name=topic),)))
    except OSError:
        return set()
    return {each.port for each in answer.brokers}


def test_whoever_was_asleep_answers_nothing_old(pair: list[Server], committer: Committer) -> None:
    """A process that sleeps longer than its session has requests to read when it wakes up."""
    leader = leader_of(committer)
    request = fetch_request(committer.group_id, committer.topic)
    with Wire(leader.host, leader.port) as wire:
        assert read_of(wire.ask(FETCH, request)).offset == 0
        leader.process.send_signal(signal.SIGSTOP)
        for _ in range(5):
            wire.request(FETCH, request)
        awake = Committer([other(pair, leader)], committer.group_id, committer.topic)
        wait_until(lambda: awake.commit(7), 30, "a commit at the other one")
        leader.process.send_signal(signal.SIGCONT)
        for _ in range(5):
            read = read_of(wire.response(FETCH, ApiKey.OFFSET_FETCH))
            assert read.error is not ErrorCode.NONE or read.offset == 7, read
    wait_until(lambda: _leads(leader) == 25, 20, "it shares the groups again")
    wait_until(lambda: committer.read() == 7, 20, "the offset, wherever it is")


def test_a_kshim_that_was_asleep_sends_the_upstream_no_old_offsets(
    kafka: Server, pair: list[Server], topic: str
) -> None:
    """It has acknowledged commits of which the upstream had not heard when it fell asleep."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    asleep, awake = pair
    everybody = (Committer(pair, f"{topic}-{number}", topic) for number in count())
    committers = list(islice((each for each in everybody if leader_of(each) is asleep), SLEEPING_GROUPS))

    def told() -> list[int | None]:
        return [admin.group_offsets(each.group_id).get((topic, 0)) for each in committers]

    wait_until(lambda: told() == [0] * SLEEPING_GROUPS, 20, "the upstream has heard of the first commits")
    assert all(committer.commit(100) for committer in committers)
    asleep.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: _leads(awake) == SHARDS, 30, "the other one leads all")
    for committer in committers:
        other_one = Committer([awake], committer.group_id, topic)
        wait_until(lambda other_one=other_one: other_one.commit(200), 20, "a commit at the other one")
    wait_until(lambda: told() == [200] * SLEEPING_GROUPS, 20, "the upstream has heard of the last ones")
    asleep.process.send_signal(signal.SIGCONT)
    wait_until(lambda: _leads(asleep) == SHARDS // 2, 30, "it shares the groups again")
    ends_s = time.monotonic() + WOULD_TELL_S
    while time.monotonic() < ends_s:
        assert told() == [200] * SLEEPING_GROUPS
    admin.close()


def serve_to_end(kafka: Server, path: Path, *options: str) -> str:
    """The last words of a kshim that refuses to start."""
    done = run_to_end(
        "serve", "--upstream", kafka.bootstrap, "--data-dir", str(path / "refused"), *options, cwd=path
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.strip().splitlines()[-1]


NO_ADDRESS = (
    "where one of them listens, is no address for the clients of the others: start it with --advertise"
)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_whoever_cannot_be_reached_does_not_share_groups(
    kafka: Server, tmp_path: Path, topic: str, host: str
) -> None:
    """A kshim that is alone answers each client with the address by which it came; several need real ones."""
    everywhere = Server(tmp_path / "everywhere", ["--upstream", kafka.bootstrap])
    everywhere.host = host
    everywhere.start()
    try:
        everywhere.host = "127.0.0.1"
        with Wire(everywhere.host, everywhere.port) as wire:
            answer = wire.ask(METADATA, MetadataRequest(topics=()))
            assert {(each.host, each.port) for each in answer.brokers} == {("127.0.0.1", everywhere.port)}
            found = wire.ask(3, FindCoordinatorRequest(key="g"))
            assert (found.host, found.port) == ("127.0.0.1", everywhere.port)
        said = serve_to_end(kafka, tmp_path, "--listen", "127.0.0.1:0")
        assert f"{host}:{everywhere.port}, {NO_ADDRESS}" in said
    finally:
        everywhere.stop()
    with_address = Server(tmp_path / "with-address", ["--upstream", kafka.bootstrap]).start()
    try:
        said = serve_to_end(kafka, tmp_path, "--listen", f"{host}:0")
        assert NO_ADDRESS in said
        assert "Traceback" not in said
        assert _leads(with_address) == SHARDS, "it was not disturbed"
    finally:
        with_address.stop()


def test_a_group_moves_here_and_back(kafka: Server, pair: list[Server], topic: str) -> None:
    """With the offsets that it has committed at the upstream, which has those that are committed here."""
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    there, here = (Committer(servers, f"group-of-{topic}", topic) for servers in ([kafka], pair))
    wait_until(lambda: there.commit(41), 20, "a commit at the upstream")
    leader = here.leader()
    assert leader is not None
    planned = _adopt(leader, "--all", "--dry-run")
    assert f"{here.group_id}  {topic}  0          41" in planned, planned
    adopted = _adopt(leader, here.group_id)
    assert adopted.split() == ["Topic", "Partition", "Offset", topic, "0", "41"], adopted
    assert here.read() == 41
    assert here.commit(42)
    wait_until(lambda: there.read() == 42, 20, "the offset at the upstream")
    far = other(pair, leader)
    assert (
        _adopt(far, here.group_id)
        == f"kshim: the coordinator of group {here.group_id} answers NOT_COORDINATOR\n"
    )
    said = _adopt(far, "--pattern", "group-of.*")
    where = f"is coordinated by the kshim at {leader.host}:{leader.port}: adopt it there"
    assert f"left: {here.group_id}: {where}" in said, said
    leader = Committer(pair, "unheard-of", topic).leader()
    assert leader is not None
    assert (
        _adopt(leader, "unheard-of") == "kshim: group unheard-of has committed no offsets at the upstream\n"
    )
    admin.close()


def _adopt(server: Server, *arguments: str) -> str:
    """The output of `kshim adopt`."""
    done = run_to_end("adopt", *arguments, "--data-dir", str(server.data_dir), cwd=server.data_dir)
    return done.stdout or done.stderr


@pytest.mark.parametrize("fault", [pytest.param("kill", marks=pytest.mark.few), "freeze"])
def test_members_go_on_in_their_generation(
    pair: list[Server], topic: str, tmp_path: Path, fault: str
) -> None:
    """Nothing that was acknowledged is lost, nothing goes back, nothing is owned twice. Nobody rebalances,
    unless its own client waits for a process that sleeps until its session is over.
    """
    bootstrap = ",".join(server.bootstrap for server in pair)
    with telling(bootstrap, topic, PARTITIONS, "range", tmp_path) as story:
        first, second = story.join("first"), story.join("second")
        story.wait_shared(first, second)
        story.wait_consumed()
        generations = story.generations()
        leader = Committer(pair, story.group_id, topic).leader()
        assert leader is not None
        with _fault(leader, fault):
            survivor = other(pair, leader)
            wait_until(lambda: _leads(survivor) == 50, 20, "the other one leads all")
            acknowledged = len(story.watch.acknowledged())
            assert acknowledged == PARTITIONS
            before = dict(story.watch.acknowledged())
            wait_until(
                lambda: all(story.watch.acknowledged()[each] > before[each] for each in before),
                CLIENTS_WAIT_S,
                lambda: f"further commits\n{story.report()}\n{survivor.report()}",
            )
        assert fault == "freeze" or story.generations() == generations, "nobody had to rebalance"
        story.reconnect()
        story.wait_shared(first, second)


@contextlib.contextmanager
def _fault(leader: Server, fault: str) -> Iterator[None]:
    if fault == "kill":
        leader.kill()
        yield
        return
    leader.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        leader.process.send_signal(signal.SIGCONT)
