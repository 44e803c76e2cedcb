"""The index of each broker: kept over restarts, never given to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshim.upstream.indexes import FILE, Indexes, WrongUpstream


def opened(directory: Path | None, cluster_id: str = "c") -> Indexes:
    indexes = Indexes(directory)
    indexes.open(cluster_id)
    return indexes


@pytest.mark.parametrize("is_kept", [True, False])
def test_brokers_get_indexes_in_the_order_in_which_they_are_seen(tmp_path: Path, *, is_kept: bool) -> None:
    indexes = opened(tmp_path if is_kept else None)
    assert [indexes.add(node_id) for node_id in (5, 2, 5, 9)] == [0, 1, 0, 2]
    assert list(indexes) == [(5, 0), (2, 1), (9, 2)]
    assert (tmp_path / FILE).exists() is is_kept


def test_they_are_the_same_after_a_restart(tmp_path: Path) -> None:
    before = opened(tmp_path)
    for node_id in (5, 2):
        before.add(node_id)
    after = opened(tmp_path)
    assert [after.add(node_id) for node_id in (2, 7, 5)] == [1, 2, 0]


def test_another_cluster_needs_another_directory(tmp_path: Path) -> None:
    opened(tmp_path).add(1)
    with pytest.raises(WrongUpstream, match="for the cluster c, and the upstream is d: use another"):
        opened(tmp_path, "d")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"cluster_id": "c"}', '{"cluster_id": "c", "brokers": 1}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(WrongUpstream, match=rf"{FILE}: cannot be read"):
        opened(tmp_path)


def test_an_index_that_cannot_be_kept_is_not_given(tmp_path: Path) -> None:
    indexes = opened(tmp_path / "gone")
    for _ in range(2):
        with pytest.raises(OSError, match="No such file"):
            indexes.add(1)
    (tmp_path / "gone").mkdir()
    assert indexes.add(2) == 0
