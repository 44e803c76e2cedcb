"""What is tortured, how it is judged, and the variables in which a program finds its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kshim.torture.outputs import POINTER, VALUE
from kshim.torture.promises import Judged


class Settings(NamedTuple):
    """What is tortured, and how it is judged."""

    command: Sequence[str]
    judged: Judged
    start_s: float = 20.0
    """How long the program may take until all its instances take part."""
    settle_s: float = 15.0
    """How long the program may get no further when it is quiet, until everything is drained."""
    partitions: int = 4
    rate: int = 60
    """Records per second."""
    keys: int = 20
    group: str = "torture"
    topic: str = "input"
    output_topic: str = "output"
    pointer: str = POINTER
    value: str = VALUE
    """The template of the records' values: $number and $key are replaced."""
    has_group: bool = True
    """False for a program that joins no group, and keeps its offsets elsewhere."""
    environment: Mapping[str, str] = {}


def variables(settings: Settings, bootstrap: str, instance: str, state: Path) -> dict[str, str]:
    """The environment variables in which a program finds its work.

    state: a directory for what the instance keeps on its disk.
    """
    return {
        **settings.environment,
        "KSHIM_BOOTSTRAP": bootstrap,
        "KSHIM_GROUP": settings.group,
        "KSHIM_TOPIC": settings.topic,
        "KSHIM_OUTPUT": settings.output_topic,
        "KSHIM_INSTANCE": instance,
        "KSHIM_STATE_DIR": str(state),
        "PYTHONUNBUFFERED": "1",
    }
