"""The consumer that the museum's programs with confluent-kafka share."""

from __future__ import annotations

from typing import Any

import pytest

from integration.torture.museum.librdkafka import Reader, polled

pytestmark = pytest.mark.kshim_only("it asks no server")


class Record:
    def error(self) -> None:
        """It is no error."""


class Scripted(Reader):
    """Polls what a test has written."""

    def __init__(self, *script: Any) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
        self._script = list(script)

    def poll(self, timeout: float) -> Any:
        step = self._script.pop(0)
        if step == "revoke":
            self.drop()
            step = self._script.pop(0)
        return step


def test_records_are_gathered_until_there_are_no_more() -> None:
    one, two = Record(), Record()
    reader = Scripted(one, two, None, None)
    assert polled(reader) == [one, two]
    assert polled(reader) == []


def test_a_record_of_a_partition_that_is_revoked_in_the_next_poll_is_left_to_its_next_owner() -> None:
    old, new = Record(), Record()
    assert polled(Scripted(old, "revoke", None)) == []
    assert polled(Scripted(old, "revoke", new, None)) == [new]
