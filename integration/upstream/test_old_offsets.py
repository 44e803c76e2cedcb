"""The offsets of a topic that was deleted and made again, directly at the upstream."""

from __future__ import annotations

import time

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.upstream.committer import Committer
from kshim.upstream.confirming import FRESH_S

LOOKS_S = 35.0
"""kshim looks at topics each half minute; what must not happen would happen then."""


def make_again(admin: Admin, topic: str) -> None:
    """Delete a topic with one partition, and create it."""
    admin.delete_topic(topic)
    wait_until(lambda: topic not in admin.list_topics(), 20, "the topic is gone")
    admin.create_topic(topic, 1)


@pytest.mark.parametrize("is_asked_before", [True, False])
def test_a_commit_for_the_new_topic_stays(
    kafka: Server, kshim: Server, topic: str, *, is_asked_before: bool
) -> None:
    admin = Admin(kafka.bootstrap)
    admin.create_topic(topic, 1)
    committer = Committer([kshim], f"group-of-{topic}", topic)
    wait_until(lambda: committer.commit(100), 20, "a commit")
    make_again(admin, topic)
    time.sleep(FRESH_S)  # a client cannot find and read the new topic sooner; this test commits at once
    committer.acknowledged = -1  # of the new topic
    if is_asked_before:
        assert committer.read() == -1
    assert committer.commit(5)
    time.sleep(LOOKS_S)
    assert committer.read() == 5
    kshim.kill()
    kshim.restart()
    assert wait_until(committer.read, 20, "the offset") == 5
    wait_until(
        lambda: admin.group_offsets(committer.group_id) == {(topic, 0): 5}, 20, "the offset at the upstream"
    )
    admin.close()
