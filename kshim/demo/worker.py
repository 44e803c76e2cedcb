"""The common part of all worker processes: they print events on stdout, and end when their stdin is closed.

The parent closes a worker's stdin to stop it in good order. If the parent dies, the operating system closes
it, so no worker outlives the run.
"""

import logging
import sys
import threading
from collections.abc import Callable

from kshim.demo.events import Event, Failed, now_ms, to_line

_one_line_at_a_time = threading.Lock()


def tell(event: Event) -> None:
    """Report an event to the parent. On return its line is in the pipe, and survives a SIGKILL."""
    with _one_line_at_a_time:
        sys.stdout.write(to_line(event) + "\n")
        sys.stdout.flush()


def one_line(error: BaseException) -> str:
    """The error's class, and the first line of its text."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def asked_to_stop() -> threading.Event:
    """A signal that is set when the parent asks this worker to stop."""
    stop = threading.Event()

    def wait_for_end_of_stdin() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end_of_stdin, daemon=True).start()
    return stop


def run(work: Callable[[list[str], threading.Event], None]) -> None:
    """Call `work` with the command line's arguments. An error is reported as `Failed`, with exit status 1."""
    name, *rest = sys.argv[1:]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        work([name, *rest], asked_to_stop())
    except Exception as error:
        logging.exception("%s failed", name)
        tell(Failed(name=name, at_ms=now_ms(), error=one_line(error)))
        sys.exit(1)
