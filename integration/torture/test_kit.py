"""`kshim.testing.torture`, as a test has it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from hypothesis import given, settings

from kshim.testing import PromiseBroken, Schedule, Unplayable, Work, schedules, torture
from kshim.torture.schedule import Event, written

pytestmark = pytest.mark.kshim_only("it starts kshim")


def careful(work: Work) -> None:
    """Process, then commit."""
    _process(work, _consumer(work))


def careless(work: Work) -> None:
    """Begins at the end, so what came before is lost."""
    _process(work, _consumer(work, **{"auto.offset.reset": "latest"}))


def absent(work: Work) -> None:
    """Fails before it joins."""
    raise ValueError("no settings")


def _consumer(work: Work, **more: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": work.bootstrap,
            "group.id": work.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            **more,
        }
    )
    consumer.subscribe([work.topic])
    return consumer


def _process(work: Work, consumer: Consumer) -> None:
    while not work.over.is_set():
        for message in consumer.consume(20, timeout=0.2):
            if message.error() is None:
                work.processed(message.topic(), message.partition(), message.offset())
                _commit(consumer, message)
    consumer.close()


def _commit(consumer: Consumer, message: object) -> None:
    with contextlib.suppress(KafkaException):  # it comes again
        consumer.commit(message=message, asynchronous=False)


@pytest.mark.few
def test_a_worker_that_keeps_its_promise() -> None:
    tortured = torture(careful, seed=1, seconds=3, instances=2, faults=["kill", "rebalance"])
    assert tortured.seed == 1
    assert tortured.records > 100
    assert any("was killed" in text for text in tortured.happened)


def test_a_worker_that_breaks_it(tmp_path: Path) -> None:
    page = tmp_path / "story.html"
    with pytest.raises(PromiseBroken) as broken:
        torture(careless, seed=2, seconds=2, settle_s=4, instances=2, faults=["rebalance"], page=page)
    assert "at-least-once is broken: " in str(broken.value)
    assert "repeat it with seed=2" in str(broken.value)
    assert broken.value.tortured.findings
    assert "at-least-once is broken" in page.read_text()


def test_a_schedule_that_was_saved_is_played_again(tmp_path: Path) -> None:
    saved = tmp_path / "failed.json"
    saved.write_text(written(Schedule(7, 2, 2000, (Event(500, "rebalance"),))))
    with pytest.raises(PromiseBroken, match=r"repeat it with schedule=.*failed\.json") as broken:
        torture(careless, schedule=saved, settle_s=4)
    assert "the group was made to rebalance" in broken.value.tortured.happened


@settings(max_examples=3, deadline=None)
@given(schedules(seconds=2, instances=2, faults=["kill", "freeze", "rebalance"]))
def test_hypothesis_draws_schedules(schedule: Schedule) -> None:
    tortured = torture(careful, schedule=schedule)
    faults = [event.fault for event in schedule.events]
    killed = sum(text.endswith(" was killed") for text in tortured.happened)
    assert killed <= faults.count("kill")
    assert tortured.records > 60


def test_a_worker_that_never_takes_part() -> None:
    with pytest.raises(Unplayable, match="no settings"):
        torture(absent, seed=1)
