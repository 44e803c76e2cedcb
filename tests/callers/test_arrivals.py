"""Clients that only ask for the brokers are noticed; others are not."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from kshim.callers import Client
from kshim.callers.arrivals import (
    ENOUGH,
    LEAST_S,
    MOST_ARRIVED,
    MOST_ASKING,
    PAUSE_S,
    Arrivals,
    is_question,
)
from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey
from schemas.messages.init_producer_id import InitProducerIdRequest

HERE = Endpoint("10.0.0.1", 9092)


def client(port: int = 51000, host: str = "10.0.0.7") -> Client:
    return Client(f"/{host}", Endpoint(host, port), HERE)


class Watch:
    def __init__(self) -> None:
        self.clock = Clock()
        self.arrivals = Arrivals(self.clock)

    def asks(self, times: int, *, every_s: float, names_any: bool = True, anew: bool = False) -> list[int]:
        """After how many questions the client was noticed."""
        noticed = []
        for number in range(1, times + 1):
            port = 51000 + number * anew
            if self.arrivals.asked(client(port), names_any=names_any):
                noticed.append(number)
            self.clock.advance(every_s)
        return noticed


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_who_asks_again_and_again_is_noticed(watch: Watch) -> None:
    assert watch.asks(8, every_s=2) == [6, 7, 8]


def test_many_questions_within_a_moment_are_those_of_a_start(watch: Watch) -> None:
    assert watch.asks(50, every_s=LEAST_S / 51) == []


def test_few_questions_are_not_enough(watch: Watch) -> None:
    assert watch.asks(ENOUGH, every_s=20) == [ENOUGH]
    assert Watch().asks(ENOUGH - 1, every_s=20) == []


def test_who_has_come_is_not_noticed_any_more(watch: Watch) -> None:
    watch.asks(1, every_s=1)
    watch.arrivals.came(client(51001))
    assert watch.asks(50, every_s=2) == []
    assert not watch.arrivals.asking


def test_another_host_does_not_come_for_it(watch: Watch) -> None:
    watch.asks(1, every_s=1)
    watch.arrivals.came(client(host="10.0.0.8"))
    assert watch.asks(8, every_s=2) != []


def test_an_idle_client_asks_every_few_minutes(watch: Watch) -> None:
    assert watch.asks(20, every_s=PAUSE_S + 1) == []


def test_questions_about_nothing_count_on_one_connection(watch: Watch) -> None:
    assert watch.asks(20, every_s=5, names_any=False, anew=True) == []
    assert watch.asks(8, every_s=5, names_any=False) != []


def test_librdkafka_asks_on_a_new_connection_each_time(watch: Watch) -> None:
    assert watch.asks(8, every_s=2, anew=True) == [6, 7, 8]


def test_only_so_many_hosts_are_known(watch: Watch) -> None:
    for number in range(MOST_ARRIVED + 1):
        each = client(host=str(number))
        watch.arrivals.asked(each, names_any=True)
        watch.arrivals.came(each)
    watch.arrivals.asked(client(host="1"), names_any=True)
    assert not watch.arrivals.asking
    for number in range(MOST_ASKING + 1):
        watch.arrivals.asked(client(host=f"asks {number}"), names_any=True)
    assert len(watch.arrivals.asking) == MOST_ASKING
    assert "asks 0" not in watch.arrivals.asking


def test_a_first_producer_id_is_a_question_but_not_that_of_a_transactional_id() -> None:
    assert is_question(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))
    assert not is_question(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id="t"))
    assert not is_question(ApiKey.FETCH, None)
