"""Runs a function of a test as an instance of a tortured program: `python -m kshim.testing.worker FILE NAME`.

The function's module is imported anew in the instance's process, so the function stands at the top of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

__all__ = ["Work", "command_of"]


class Work:
    """What a worker finds its work by. An instance has one."""

    def __init__(self) -> None:
        self.bootstrap = os.environ["KSHIM_BOOTSTRAP"]
        """The addresses of the brokers, comma-separated."""
        self.group = os.environ["KSHIM_GROUP"]
        """The group to join."""
        self.topic = os.environ["KSHIM_TOPIC"]
        """The topic to subscribe to."""
        self.output = os.environ["KSHIM_OUTPUT"]
        """The topic to write to, if that judges the program."""
        self.instance = os.environ["KSHIM_INSTANCE"]
        """The instance's name, such as "c1"; the same after each restart."""
        self.state_dir = Path(os.environ["KSHIM_STATE_DIR"])
        """A directory of the instance, empty at its first start, and kept when it is killed."""
        self.over = threading.Event()
        """Set when the instance is asked to end (SIGTERM)."""

    def processed(self, topic: str, partition: int, offset: int) -> None:
        """Report that a record is processed. When this returns, the report is safe from a kill."""
        sys.stdout.write(f"processed {topic} {partition} {offset}\n")
        sys.stdout.flush()


def command_of(consumer: Sequence[str] | Callable[[Work], None]) -> Sequence[str]:
    """The command that runs a function, or the command that was given. Raises TypeError, ValueError."""
    if isinstance(consumer, str):
        raise TypeError(f"consumer has to be a list of words, not one str: write {consumer.split()!r}")
    if not callable(consumer):
        return consumer
    name = getattr(consumer, "__qualname__", "")
    if not inspect.isfunction(consumer) or "<" in name or "." in name:
        raise ValueError(
            f"{name or consumer!r} cannot be run in another process: name a function at the top of a module"
        )
    file = inspect.getfile(consumer)
    return [sys.executable, "-m", "kshim.testing.worker", file, consumer.__module__, name]


def main(file: str, module_name: str, name: str) -> None:
    """Import the module, and run its function until that returns."""
    work = Work()
    signal.signal(signal.SIGTERM, lambda *_: work.over.set())
    getattr(_module(file, module_name), name)(work)


def _module(file: str, name: str) -> ModuleType:
    """Import a module by its name, if that leads to this file, else from the file."""
    try:
        found = importlib.import_module(name)
        if Path(found.__file__ or "").samefile(file):
            return found
    except (ImportError, OSError):
        pass
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
