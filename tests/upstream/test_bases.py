"""Nothing of the upstream inherits from the local server: both implement the same views."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import kshim.upstream


def classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(kshim.upstream.__path__, "kshim.upstream."):
        members = vars(import_module(found.name)).values()
        yield from (each for each in members if isinstance(each, type) and each.__module__ == found.name)


def test_no_class_has_a_base_in_another_room() -> None:
    found = {
        f"{each.__qualname__}({base.__qualname__})"
        for each in classes()
        for base in each.__mro__
        if base.__module__.startswith("kshim.") and not base.__module__.startswith("kshim.upstream.")
        if not getattr(base, "_is_protocol", False) and not issubclass(base, Exception)
    }
    assert found == set()
    assert len(list(classes())) > 100
