"""kshim's first words with the upstream: which address, how often, and when it is of no use."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.configs.endpoint import Endpoint
from kshim.upstream.connector import Connector
from kshim.upstream.contact import Contact
from kshim.upstream.link import Link, LinkError

FIRST, SECOND = Endpoint("a", 1), Endpoint("b", 2)


class Upstream(Contact):
    """Brokers that are there, or not, or refuse kshim."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(Connector(self.clock), [FIRST, SECOND])
        self.errors = {FIRST: error("is not there"), SECOND: error("is not there")}
        self.tried: list[Endpoint] = []

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        self.tried.append(address)
        return (
            fail(self.errors[address])
            if address in self.errors
            else succeed(Link(self.clock, address, "kshim"))
        )


def error(why: str, *, is_refused: bool = False) -> LinkError:
    found = LinkError(why)
    found.is_refused = is_refused
    return found


def outcome(upstream: Upstream) -> Any:
    """The outcome of the first link, within ten seconds."""
    found: list[Any] = []
    Deferred.fromCoroutine(upstream.first(10)).addBoth(found.append)
    upstream.clock.pump([0.5] * 25)
    return found[0].address if isinstance(found[0], Link) else found[0].value


def test_the_first_address_that_answers_counts() -> None:
    upstream = Upstream()
    del upstream.errors[SECOND]
    assert outcome(upstream) == SECOND
    assert upstream.tried == [FIRST, SECOND]


def test_a_start_that_takes_longer_than_a_second_says_what_it_tries(caplog: pytest.LogCaptureFixture) -> None:
    assert str(outcome(Upstream())) == "is not there"
    (record,) = caplog.records
    assert record.getMessage() == "trying to reach the upstream a:1,b:2 for 9 s more; is not there"


def test_a_start_that_is_quick_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Upstream()
    del upstream.errors[SECOND]
    assert outcome(upstream) == SECOND
    assert caplog.records == []


def test_addresses_that_do_not_answer_are_tried_again() -> None:
    upstream = Upstream()
    assert str(outcome(upstream)) == "is not there"
    assert len(upstream.tried) > 20


@pytest.mark.parametrize("refuses", [FIRST, SECOND])
def test_who_refuses_is_told_at_once_and_not_asked_again(refuses: Endpoint) -> None:
    upstream = Upstream()
    upstream.errors[refuses] = error("refuses the login", is_refused=True)
    assert str(outcome(upstream)) == "refuses the login"
    assert upstream.tried == [FIRST, SECOND]


def test_who_refuses_does_not_matter_if_another_does_not() -> None:
    upstream = Upstream()
    upstream.errors = {FIRST: error("refuses the login", is_refused=True)}
    assert outcome(upstream) == SECOND
