from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from kshim.storage.embedded import EmbeddedStore, applier, writes
from kshim.storage.embedded import store as store_module
from kshim.storage.embedded.environment import Environment
from kshim.storage.interfaces import Store
from kshim.storage.memory import MemoryStore
from tests.storage.reactor import Reactor


def unsynced(environment: type[Environment], data_dir: Path, *, sync: bool, max_bytes: int) -> Environment:
    """LMDB without syncs: tests of the log do not wait for those of LMDB."""
    return environment(data_dir, sync=False, max_bytes=max_bytes)


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB gets each write at once, and each append is a chunk."""
    monkeypatch.setattr(applier, "APPLY_S", 0)
    monkeypatch.setattr(store_module, "Environment", partial(unsynced, Environment))
    monkeypatch.setattr(writes, "CHUNK_BYTES", 1)


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def open_embedded(reactor: Reactor, tmp_path: Path) -> Iterator[Callable[..., EmbeddedStore]]:
    """Open a store in the test's data directory; it is closed at the end if it is still open."""
    with ExitStack() as closing:

        def open_store(data_dir: Path = tmp_path / "data", **options: object) -> EmbeddedStore:
            store = EmbeddedStore(data_dir, reactor, **{"sync": False, **options})
            store.open()
            closing.callback(lambda: reactor.result(store.close()))
            return store

        yield open_store


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        store = MemoryStore()
        store.open()
        return store
    opened: EmbeddedStore = request.getfixturevalue("open_embedded")()
    return opened


@pytest.fixture(scope="module")
def data_dirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for each example."""
    root = tmp_path_factory.mktemp("model")
    return (root / str(number) for number in range(10**6))
