"""What every worker process has in common: it tells events on stdout and ends when its stdin does.

The parent closes stdin to stop a worker in good order. When the parent dies, however it dies, the
operating system closes it, and no worker outlives the run.
"""

import logging
import sys
import threading
from collections.abc import Callable

from kshim.demo.events import Event, Failed, now_ms, to_line

_one_line_at_a_time = threading.Lock()


def tell(event: Event) -> None:
    """Tell the parent. The line is complete in the pipe when this returns, so it survives a SIGKILL."""
    with _one_line_at_a_time:
        sys.stdout.write(to_line(event) + "\n")
        sys.stdout.flush()


def one_line(error: BaseException) -> str:
    """The error's class and the first line of what it says."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def asked_to_stop() -> threading.Event:
    """An event that is set when the parent wants this worker to finish."""
    stop = threading.Event()

    def wait_for_end_of_stdin() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end_of_stdin, daemon=True).start()
    return stop


def run(work: Callable[[list[str], threading.Event], None]) -> None:
    """Run a worker's function on its arguments, name first. An error is told as `Failed`, exit status 1."""
    name, *rest = sys.argv[1:]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        work([name, *rest], asked_to_stop())
    except Exception as error:
        logging.exception("%s failed", name)
        tell(Failed(name=name, at_ms=now_ms(), error=one_line(error)))
        sys.exit(1)
