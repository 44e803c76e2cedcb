"""Starts servers by fork, for tests. Everything is imported only once, so a server starts within
milliseconds.

`kshim.testing.processes` runs `python -m kshim.cli.warm FD`, and sends commands through the socket FD, one
line of JSON for each:

* ["start", properties], with three descriptors: for the server's standard output, for its log, and for its
  exit
  status, which is written when it has ended. The answer is the server's process id.
* ["signal", pid, number] is answered when the signal is sent.

When the socket's other end is closed, the servers are ended. While there are no commands, modules and code
that a server's first clients will need are prepared.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from kshim.cli.reactor import without_unused
from kshim.cli.running import run_with
from schemas.api_key import ApiKey

MAX_LINE_BYTES = 1 << 20
IDLE_S = 0.3
USED = (
    *("kshim.cli.collector", "kshim.cli.logs", "kshim.configs.config"),
    *("kshim.server.server", "kshim.server.local", "kshim.storage.embedded"),
)
LATER = ("crc32c", "cramjam", "kshim.storage.memory")
REACTORS = ("twisted.internet.epollreactor", "twisted.internet.pollreactor")
"""Twisted takes the first of these that the platform has. Importing the module does not make a reactor."""
USUAL = (
    *(ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS),
    *(ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    *(ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS),
)
LATEST_VERSIONS = 6
"""The number of latest versions of each usual API that are prepared. Older versions are made at first use."""


class Forks:
    """The servers that were started and have not been waited for."""

    def __init__(self, commands: socket.socket) -> None:
        self._commands = commands
        self._ends: dict[int, int] = {}
        """The descriptor to write the exit status to, by process id."""

    def start(self, properties: dict[str, str], descriptors: list[int]) -> int:
        """Fork a server, and return its process id."""
        output, log, end = descriptors
        pid = os.fork()
        if pid == 0:
            try:
                self._become_server(properties, output, log, end)
            finally:
                os._exit(1)
        os.close(output)
        os.close(log)
        self._ends[pid] = end
        return pid

    def _become_server(self, properties: dict[str, str], output: int, log: int, end: int) -> NoReturn:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(log, 2)
        for descriptor in (output, log, end, *self._ends.values()):
            os.close(descriptor)
        self._commands.close()
        try:
            run_with(properties, "info")
        except SystemExit as exit_:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_.code if isinstance(exit_.code, int) else 1)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a server, unless it has ended."""
        if pid in self._ends:
            os.kill(pid, number)

    def reap(self) -> None:
        """Write the exit status of each server that has ended."""
        for pid in list(self._ends):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                end = self._ends.pop(pid)
                with suppress(BrokenPipeError):
                    os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(end)

    def end_all(self) -> None:
        for pid in self._ends:
            os.kill(pid, signal.SIGTERM)


def main(descriptor: int) -> None:
    """Take commands until the other end of the socket is closed."""
    gc.disable()
    commands = socket.socket(fileno=descriptor)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _import_server()
    forks, preparing = Forks(commands), _prepare()
    selector = selectors.DefaultSelector()
    selector.register(commands, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    idle_s: float | None = IDLE_S
    while True:
        ready = {key.fileobj for key, _ in selector.select(idle_s)}
        if woken in ready:
            os.read(woken, 4096)
            forks.reap()
        if commands in ready and not _obey(commands, forks):
            forks.end_all()
            return
        if not ready:  # the first step only after a while, the others as soon as nobody asks for anything
            idle_s = 0.0 if next(preparing, None) else None
        elif idle_s is not None:
            idle_s = IDLE_S


def _obey(commands: socket.socket, forks: Forks) -> bool:
    """Carry out one command. Return False if the other end is closed."""
    line, descriptors, _, _ = socket.recv_fds(commands, MAX_LINE_BYTES, 3)
    while line and not line.endswith(b"\n"):
        more = commands.recv(MAX_LINE_BYTES)
        line = line + more if more else b""
    if not line:
        return False
    answer: int | None = None
    match json.loads(line):
        case ["start", properties]:
            answer = forks.start(properties, descriptors)
        case ["signal", pid, number]:
            forks.signal(pid, number)
    commands.sendall(json.dumps(answer).encode() + b"\n")
    return True


def _import_server() -> None:
    with without_unused():
        for name in REACTORS:
            with suppress(ImportError):
                import_module(name)
                break
    for name in USED:
        import_module(name)


def _prepare() -> Iterator[bool]:
    """Import the modules that answer usual requests, and make the code for their messages, piece by piece."""
    from schemas.registry import VERSIONS, prepare

    for name in LATER:
        import_module(name)
    for api_key in USUAL:
        import_module(f"kshim.api.{api_key.name.lower()}")
        yield True
        for version in VERSIONS[api_key][-LATEST_VERSIONS:]:
            prepare(api_key, version)
            yield True


if __name__ == "__main__":
    main(int(sys.argv[1]))
