"""The contract of every backend's metadata map."""

from kshim.storage.interfaces import Store
from tests.storage.reactor import Reactor


def test_put_get_and_delete(store: Store, reactor: Reactor) -> None:
    metadata = store.metadata
    assert metadata.get(b"a") is None
    reactor.result(metadata.put({b"a": b"1", b"b": b""}))
    assert metadata.get(b"a") == b"1"
    assert metadata.get(b"b") == b""
    reactor.result(metadata.put({b"a": None, b"missing": None, b"b": b"2"}))
    assert metadata.get(b"a") is None
    assert metadata.get(b"b") == b"2"


def test_items_have_the_prefix_and_come_by_key(store: Store, reactor: Reactor) -> None:
    metadata = store.metadata
    reactor.result(
        metadata.put({b"t/b": b"2", b"t/a": b"1", b"s/z": b"0", b"t": b"-", b"u/": b"9", b"\xff": b"x"})
    )
    assert list(metadata.items(b"t/")) == [(b"t/a", b"1"), (b"t/b", b"2")]
    assert [key for key, _ in metadata.items(b"")] == [b"s/z", b"t", b"t/a", b"t/b", b"u/", b"\xff"]
    assert list(metadata.items(b"v")) == []
    assert list(metadata.items(b"\xff")) == [(b"\xff", b"x")]


def test_items_are_as_they_were_when_asked_for(store: Store, reactor: Reactor) -> None:
    metadata = store.metadata
    reactor.result(metadata.put({b"a": b"1", b"b": b"1"}))
    items = metadata.items(b"")
    reactor.result(metadata.put({b"b": None, b"c": b"1"}))
    assert [key for key, _ in items] == [b"a", b"b"]


def test_changes_after_the_call_do_not_count(store: Store, reactor: Reactor) -> None:
    changes: dict[bytes, bytes | None] = {b"a": b"1"}
    put = store.metadata.put(changes)
    changes[b"a"] = b"2"
    reactor.result(put)
    assert store.metadata.get(b"a") == b"1"


def test_large_values(store: Store, reactor: Reactor) -> None:
    reactor.result(store.metadata.put({b"large": bytes(1_000_000)}))
    assert store.metadata.get(b"large") == bytes(1_000_000)
