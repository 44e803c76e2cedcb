"""What a plan predicts follows from the timeouts of the protocol, and from nothing else."""

from __future__ import annotations

import pytest

from kshim.plan import classic
from kshim.plan.broker import coordinator_settings
from kshim.plan.deployment import Crash, RollingRestart, Scale, Step, deployed
from kshim.plan.run import Predicted, predicted
from kshim.plan.setting import BrokerKind, ClientKind, Protocol, Setting

MINUTES_MS = 60_000
EAGER = Setting("eager")
COOPERATIVE = Setting("cooperative", Protocol.COOPERATIVE)
CONSUMER = Setting("consumer", Protocol.CONSUMER)
STATIC = Setting("static", is_static=True)
ALL = (EAGER, COOPERATIVE, CONSUMER, STATIC)


def _play(setting: Setting, *steps: Step, members: int = 3, seed: int = 0, partitions: int = 6) -> Predicted:
    return predicted(setting, [deployed(members, steps, seed)], 5 * MINUTES_MS, partitions, seed)


@pytest.mark.parametrize("setting", ALL, ids=lambda it: it.name)
@pytest.mark.parametrize("broker", BrokerKind)
def test_nothing_happens_where_nothing_is_done(setting: Setting, broker: BrokerKind) -> None:
    it = _play(setting._replace(broker=broker))
    assert it.figures._replace(rebalances=0, moves=0) == it.figures
    assert it.runs[0].happened.unowned == ()


@pytest.mark.parametrize("setting", [EAGER, COOPERATIVE, CONSUMER], ids=lambda it: it.name)
def test_the_partitions_of_a_crashed_member_wait_for_the_end_of_its_session(setting: Setting) -> None:
    """It is heard for the last time up to an interval before the crash, and others hear of its end up to an
    interval after it.
    """
    setting = setting._replace(session_ms=20_000, heartbeat_ms=2_000)
    for seed in range(5):
        it = _play(setting, Crash(MINUTES_MS, 1), seed=seed)
        assert 18_000 <= it.figures.partition_longest_ms <= 23_200
        assert 2 * 18_000 <= it.figures.unowned_ms <= 2 * 23_200 + 6 * 2_100


def test_a_static_member_that_comes_back_in_time_costs_only_its_own_partitions() -> None:
    it = _play(STATIC, RollingRestart(0, 20_000, 5_000)).figures
    assert (it.rebalances, it.moves) == (0, 0)
    assert it.partition_pauses == 6
    assert 5_000 <= it.partition_p50_ms <= it.partition_longest_ms <= 5_010


def test_a_static_member_that_comes_back_late_has_lost_its_partitions() -> None:
    it = _play(STATIC._replace(session_ms=6_000), RollingRestart(0, 60_000, 20_000)).figures
    assert it.rebalances >= 6
    assert it.moves > 0


@pytest.mark.parametrize("broker", BrokerKind)
def test_cooperative_members_keep_what_stays_theirs(broker: BrokerKind) -> None:
    """Two members get a third one: two of the six partitions move, in two rebalances."""
    it = _play(COOPERATIVE._replace(broker=broker), Scale(0, 3), members=2).figures
    assert (it.moves, it.partition_pauses, it.rebalances) == (2, 2, 2)


def test_eager_members_give_up_everything() -> None:
    assert _play(EAGER, Scale(0, 3), members=2).figures.partition_pauses == 6


def test_members_of_the_consumer_protocol_learn_with_their_heartbeats() -> None:
    """The leaver's partitions are given to the others with their next heartbeats, within one interval."""
    it = _play(CONSUMER, Scale(0, 2)).figures
    assert it.moves == 2
    assert 0 < it.partition_longest_ms <= 5_010


@pytest.mark.parametrize("setting", [EAGER, COOPERATIVE, CONSUMER], ids=lambda it: it.name)
def test_with_kshim_members_learn_at_once(setting: Setting) -> None:
    """Their heartbeats wait at the server, for most of the time; see decisions 018 and 035."""
    kafka = [_play(setting, Scale(MINUTES_MS, 2), seed=seed).figures for seed in range(8)]
    kshim = setting._replace(broker=BrokerKind.KSHIM)
    ours = [_play(kshim, Scale(MINUTES_MS, 2), seed=seed).figures for seed in range(8)]
    assert sum(it.unowned_ms for it in ours) < sum(it.unowned_ms for it in kafka) / 3


def test_a_new_cooperative_member_hears_of_the_second_rebalance() -> None:
    """kafka-clients hear of it with their first heartbeat, an interval after the first rebalance. The first
    heartbeat of librdkafka comes at once: it is mostly too early for Kafka, but waits at kshim. Then
    librdkafka joins again when a second has passed since it joined last.
    """

    def pauses_ms(client: ClientKind, broker: BrokerKind) -> list[int]:
        setting = COOPERATIVE._replace(client=client, broker=broker)
        runs = [_play(setting, Scale(0, 3), members=2, seed=seed) for seed in range(20)]
        return sorted(run.figures.member_p50_ms for run in runs)

    assert pauses_ms(ClientKind.JAVA, BrokerKind.KAFKA)[0] >= 3_000
    java = pauses_ms(ClientKind.JAVA, BrokerKind.KSHIM)
    assert 3_000 <= java[0] <= java[9] <= 3_100
    librdkafka = pauses_ms(ClientKind.LIBRDKAFKA, BrokerKind.KAFKA)
    assert 1_000 <= librdkafka[0] < 3_000 < librdkafka[9]
    waiting = pauses_ms(ClientKind.LIBRDKAFKA, BrokerKind.KSHIM)
    assert 1_000 <= waiting[0] <= waiting[9] <= 1_100


def test_heartbeats_of_kafka_python_do_not_wait() -> None:
    setting = EAGER._replace(client=ClientKind.PYTHON, initial_delay_ms=0)
    steps = (RollingRestart(0, 20_000, 5_000), Crash(100_000, 1))
    kafka, kshim = (_play(setting._replace(broker=broker), *steps) for broker in BrokerKind)
    assert kafka.runs == kshim.runs


def test_librdkafka_leaves_out_a_heartbeat_while_the_last_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So at times no heartbeat of a member is at the server, and others wait for it: the more often, the less
    even its heartbeats are.
    """
    monkeypatch.setitem(classic.LATE_MS, ClientKind.LIBRDKAFKA, 200)
    setting = EAGER._replace(client=ClientKind.LIBRDKAFKA, broker=BrokerKind.KSHIM)
    longest = [
        _play(setting, Scale(MINUTES_MS, 2), seed=seed).figures.partition_longest_ms for seed in range(20)
    ]
    assert min(longest) < 150
    assert 500 < max(longest) <= 3_100


def test_a_busy_program_delays_all_members_of_an_eager_group() -> None:
    busy = EAGER._replace(processing_ms=10_000)
    runs = [_play(busy, Scale(0, 3), members=2, seed=seed).figures for seed in range(9)]
    assert max(it.partition_longest_ms for it in runs) > 4_000
    assert all(it.partition_longest_ms <= 10_000 + 3_100 for it in runs)
    assert _play(EAGER, Scale(0, 3), members=2).figures.partition_longest_ms < 100


def test_the_initial_delay_counts_for_a_group_that_was_empty() -> None:
    restart = RollingRestart(MINUTES_MS, 1, 10_000)
    delayed = _play(EAGER._replace(initial_delay_ms=3_000), restart, members=1).figures
    at_once = _play(EAGER._replace(initial_delay_ms=0), restart, members=1).figures
    assert 2_900 <= delayed.partition_longest_ms - at_once.partition_longest_ms <= 3_100


@pytest.mark.parametrize("setting", ALL, ids=lambda it: it.name)
def test_a_seed_is_a_whole_run(setting: Setting) -> None:
    steps = (RollingRestart(1_000, 7_000, 2_000), Crash(100_000, 1))
    assert _play(setting, *steps, seed=4) == _play(setting, *steps, seed=4)
    assert _play(setting, *steps, seed=4) != _play(setting, *steps, seed=5)


def test_the_recorder_s_view_agrees_with_the_clients() -> None:
    """It takes a crashed member's last heartbeat for its end, which comes up to an interval earlier."""
    it = _play(COOPERATIVE, Crash(MINUTES_MS, 1))
    recorded = it.runs[0].recorded
    assert recorded.moves == it.figures.moves == 2
    assert 0 <= recorded.unowned_ms - it.figures.unowned_ms <= 2 * 3_020


def test_all_partitions_have_an_owner_again_at_the_end() -> None:
    steps = (RollingRestart(0, 3_000, 2_000), Scale(30_000, 7), Crash(60_000, 2, 10_000), Scale(90_000, 2))
    for setting in ALL:
        for broker in BrokerKind:
            it = _play(setting._replace(broker=broker), *steps, members=4, partitions=20)
            assert it.runs[0].happened.unowned[-1].end_ms < 5 * MINUTES_MS, (setting.name, broker)


def test_a_deployment_may_end_the_whole_group() -> None:
    it = predicted(EAGER, [deployed(1, [Crash(0, 1)])], MINUTES_MS, 4)
    assert it.figures.unowned_ms == 4 * MINUTES_MS


def test_the_figures_are_those_of_all_runs() -> None:
    deployments = [deployed(3, [Crash(MINUTES_MS, 1)], seed) for seed in range(3)]
    all_of_them = predicted(EAGER, deployments, MINUTES_MS * 5, 6)
    alone = [predicted(EAGER, [each], MINUTES_MS * 5, 6, seed) for seed, each in enumerate(deployments)]
    assert [run for it in alone for run in it.runs] == list(all_of_them.runs)
    assert all_of_them.figures.unowned_ms == sum(it.figures.unowned_ms for it in alone) / 3


def test_round_times_are_no_times_of_heartbeats() -> None:
    """A minute is a multiple of the interval, and yet others hear of a leave at once, or late."""
    longest = [
        _play(EAGER, Scale(MINUTES_MS, 2), seed=seed).figures.partition_longest_ms for seed in range(20)
    ]
    assert min(longest) < 1_000
    assert max(longest) > 2_000


@pytest.mark.parametrize("setting", ALL, ids=lambda it: it.name)
def test_a_process_starts_only_when_the_one_before_has_ended(setting: Setting) -> None:
    """A program that is closed finishes first what it works on."""
    busy = setting._replace(processing_ms=8_000)
    it = _play(busy, RollingRestart(0, 30_000, 0)).figures
    assert it.member_pauses >= 3
    alone = _play(busy, RollingRestart(0, 30_000, 0), members=1)
    spans = alone.runs[0].happened.unowned
    assert all(0 <= span.begin_ms <= 8_000 for span in spans)
    assert all(span.end_ms < MINUTES_MS for span in spans)


def test_a_deployment_begins_when_every_partition_has_an_owner() -> None:
    """Members of the consumer protocol have their first partitions after up to an interval."""
    slow = CONSUMER._replace(heartbeat_ms=20_000)
    it = predicted(slow, [deployed(3, [Crash(10_000, 1)])], 10_000, 6, calm_ms=1_000)
    assert it.figures.unowned_ms == 0


def test_assignments_are_as_far_apart_as_each_broker_has_them() -> None:
    kafka, kshim = (coordinator_settings(CONSUMER._replace(broker=broker)) for broker in BrokerKind)
    assert (kafka.group_consumer_assignment_interval_ms, kshim.group_consumer_assignment_interval_ms) == (
        1_000,
        0,
    )
