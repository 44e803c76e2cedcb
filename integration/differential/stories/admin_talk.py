"""One server as an administrator asks it: requests, and answers made comparable.

A story is a function of an `Admin` and a version. Both servers must answer it in the same way, except where
the story names a meant difference, by its key in docs/differences.md. Its topics have a prefix of their own.

Apache Kafka reports a change only once its broker has heard of it. So kshim is asked first, and a request
that only reads is repeated on Apache Kafka until it answers the same, or patience runs out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from integration.apache_kafka.jars import RELEASE
from integration.differential.older import NEWER_CONFIGS
from integration.differential.playing.asking import CLOSED, Address
from integration.differential.playing.plain import NO_ID, Plain
from kshim.testing.wire import Wire, api_key_of
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.describe_log_dirs import DescribeLogDirsRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.registry import VERSIONS

TIMEOUT_S = 10
PATIENCE_S = 5
TOPIC, GROUP = 2, 32
SETS = {
    ("DescribeConfigsResult", "configs"),
    ("ListConfigResourcesResponse", "config_resources"),
    ("CreateTopicsResponse", "topics"),
    ("DeleteTopicsResponse", "responses"),
    ("CreatePartitionsResponse", "results"),
    ("MetadataResponse", "topics"),
    ("MetadataResponseTopic", "partitions"),
    ("DescribeLogDirsResult", "topics"),
    ("DescribeLogDirsTopic", "partitions"),
    ("AlterReplicaLogDirsResponse", "results"),
    ("AlterReplicaLogDirTopicResult", "partitions"),
    ("AlterClientQuotasResponse", "entries"),
    ("DescribeClientQuotasResponse", "entries"),
    ("EntryData", "values"),
    ("AlterUserScramCredentialsResponse", "results"),
    ("DescribeUserScramCredentialsResponse", "results"),
    ("DescribeUserScramCredentialsResult", "credential_infos"),
}
PER_SERVER = {"port", "cluster_id"}
COUNTED = {
    ("PartitionData", "leader_epoch"),
    ("PartitionData", "high_watermark"),
    ("ReplicaState", "log_end_offset"),
    ("ReplicaState", "last_fetch_timestamp"),
    ("ReplicaState", "last_caught_up_timestamp"),
}
"""Numbers of a quorum that grow while it lives."""
PLACES = {"log_dir", "total_bytes", "usable_bytes"}


@dataclass(frozen=True)
class Story:
    """A story, to run at every version of one API."""

    api_key: ApiKey
    """The API whose versions it uses."""
    tell: Callable[[Admin], None]

    @property
    def name(self) -> str:
        return self.tell.__name__


def story(api_key: ApiKey) -> Callable[[Callable[[Admin], None]], Story]:
    return partial(Story, api_key)


@dataclass(frozen=True)
class Told:
    """A request and its answer."""

    request: str
    answer: Any
    meant: str
    """The key of the difference that the answer shows, if one is meant."""


class Admin(Plain):
    """Asks one server on behalf of one story.

    expected: what the other server answered before, if it did. settle: called after each change.
    """

    sets = SETS

    def __init__(
        self,
        server: Address | None,
        story: str,
        version: int,
        expected: Sequence[Told] | None = None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._wire: Wire | None = None
        self._expected = expected
        self._settle = settle
        self.prefix = f"{story.replace('_', '-')}-{version}-"
        self.version = version
        self._cluster_id = ""
        self._left_out: frozenset[str] = frozenset()
        self.heard: list[Told] = []
        """The answers so far."""

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    def topic(self, name: str) -> str:
        """The full name of one of this story's topics."""
        return self.prefix + name

    def topic_id(self, name: str) -> UUID:
        """The id that this server gave to a topic."""
        (topic,) = self._answer(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 12).topics
        assert isinstance(topic.topic_id, UUID)
        return topic.topic_id

    def cluster_id(self) -> str:
        """The id of this server's cluster, which its answers may repeat."""
        self._cluster_id = str(self._answer(DescribeClusterRequest(), 0).cluster_id)
        return self._cluster_id

    def log_dir(self) -> str:
        """The path of this server's directory."""
        (found,) = self._answer(DescribeLogDirsRequest(topics=()), 4).results
        return str(found.log_dir)

    def change(
        self, request: Any, *, meant: str = "", version: int | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Ask once."""
        self._tell(request, self._ask(request, version, timeout_s=timeout_s), meant)
        self._settle()

    def look(
        self,
        request: Any,
        *,
        meant: str = "",
        version: int | None = None,
        but_for: Iterable[str] = (),
        only: str = "",
    ) -> None:
        """Ask until the answer is as expected.

        but_for: the names of configs or features that are not compared. only: the one field that is.
        """
        self._left_out = frozenset(but_for)
        answer = self._ask(request, version, only=only)
        if self._expected is not None and not meant:
            deadline = time.monotonic() + PATIENCE_S
            expected = self._expected[len(self.heard)].answer
            while answer != expected and time.monotonic() < deadline:
                answer = self._ask(request, version, only=only)
        self._left_out = frozenset()
        self._tell(request, answer, meant)

    def _tell(self, request: Any, answer: Any, meant: str) -> None:
        self.heard.append(Told(self.plain_text(str(request)), answer, meant))

    def _ask(self, request: Any, version: int | None, timeout_s: float = TIMEOUT_S, only: str = "") -> Any:
        try:
            plain = self.plain(self._answer(request, version, timeout_s))
            return plain[only] if only else plain
        except (ConnectionError, TimeoutError) as error:
            self.close()
            self._wire = None
            return "no answer" if isinstance(error, TimeoutError) else CLOSED

    def _answer(self, request: Any, version: int | None, timeout_s: float = TIMEOUT_S) -> Any:
        """Raises ConnectionError, TimeoutError."""
        api_key = api_key_of(request)
        version = self.version if version is None else version
        version = min(max(version, VERSIONS[api_key][0]), VERSIONS[api_key][-1])
        if self._wire is None:
            assert self._server is not None
            self._wire = Wire(self._server.host, self._server.port)
        self._wire.settimeout(timeout_s)
        return self._wire.ask(version, request)

    def plain(self, value: Any) -> Any:
        plain = super().plain(value)
        if not isinstance(plain, list):
            return plain
        left_out = self._left_out | NEWER_CONFIGS.get(RELEASE, frozenset())
        return [item for item in plain if not (isinstance(item, dict) and item.get("name") in left_out)]

    def plain_text(self, value: str) -> str:
        text = value.replace(self.prefix, "")
        return text.replace(self._cluster_id, "<cluster id>") if self._cluster_id else text

    def plain_field(self, entity: str, name: str, value: Any) -> Any:
        if name == "documentation":
            return "some" if value else value
        if name in PER_SERVER:
            return value is not None and bool(value)
        if (entity, name) in COUNTED:
            return value > 0 if value != -1 else value
        if name in PLACES:
            return "somewhere" if isinstance(value, str) else value > 0
        return super().plain_field(entity, name, value)

    def is_foreign(self, item: Any) -> bool:
        """True if a listed topic belongs to another story."""
        match type(item).__name__:
            case "DescribeTopicPartitionsResponseTopic" if not item.error_code:
                return not item.name.startswith(self.prefix)
            case "DescribeLogDirsTopic":
                return not item.name.startswith(self.prefix)
            case "ConfigResource" if item.resource_type in (TOPIC, GROUP):
                return not item.resource_name.startswith(self.prefix)
        return False


class Rehearsal(Admin):
    """Sends nothing."""

    def topic_id(self, name: str) -> UUID:
        return NO_ID

    def cluster_id(self) -> str:
        return ""

    def log_dir(self) -> str:
        return ""

    def _ask(self, *_: object, **__: object) -> None:
        return None
