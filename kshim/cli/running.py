"""Runs one server in this process: makes a Config from properties, and a server from the Config."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from kshim.cli.faults import EXIT_USAGE, fail

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kshim.answering import Broker
    from kshim.configs.config import Config
    from kshim.configs.endpoint import Endpoint
    from kshim.server.server import Server
    from kshim.storage.reactor import Reactor
    from kshim.upstream.here import Here

LARGEST_FREED_BYTES = 16 * 1024 * 1024


def run_with(
    properties: Mapping[str, str],
    log_level: str,
    *,
    end_with_stdin: bool = False,
    warnings: Sequence[str] = (),
) -> NoReturn:
    """Run a server with these properties, and exit with its status; with 2 if they are not valid.

    end_with_stdin: True to end the server when standard input ends, too. warnings: lines for the log.
    """
    from kshim.cli import collector

    collector.defer()
    from kshim.cli import logs
    from kshim.configs.reading import ConfigError, new_config

    try:
        config, further = new_config(properties)
    except ConfigError as error:
        fail(*error.problems)
    logs.start(log_level)
    for warning in (*warnings, *further):
        logs.logger.warning(warning)
    sys.exit(run(config, end_with_stdin=end_with_stdin))


def run(config: Config, *, end_with_stdin: bool = False) -> int:
    """Run a server in the global reactor until SIGINT or SIGTERM. Returns the exit status."""
    from kshim.cli.reactor import import_reactor

    reactor: Reactor = import_reactor()
    from twisted.internet.error import ReactorNotRunning

    from kshim.cli import logs
    from kshim.cli.signals import stop_at_signals
    from kshim.server import StartError

    logs.take_in_twisted()
    _take_all_descriptors()
    _keep_freed_memory()
    server = _new_server(config, reactor)
    status = 0

    def start() -> None:
        reactor.addSystemEventTrigger("before", "shutdown", server.stop)
        server.start().addCallbacks(ready, failed)

    def ready(addresses: Mapping[str, Sequence[Endpoint]]) -> None:
        server.loaded().addCallback(lambda _: _begin_to_collect(reactor))
        found = {name: ",".join(map(str, of_brokers)) for name, of_brokers in addresses.items()}
        lines = [f"kshim ready {next(iter(found.values()))}"]
        if len(found) > 1:
            lines += [f"kshim listener {name} {listed}" for name, listed in found.items()]
        if server.http_address is not None:
            lines.append(f"kshim http {server.http_address}")
        print("\n".join(lines), flush=True)  # in one write, as a reader may close the pipe after one line

    def failed(failure: Failure) -> None:
        nonlocal status
        foreseen = isinstance(failure.value, StartError)
        status = EXIT_USAGE if foreseen else 1
        print(f"kshim: {failure.getErrorMessage() if foreseen else failure.getTraceback()}", file=sys.stderr)
        stop()

    def stop() -> None:
        with suppress(ReactorNotRunning):
            reactor.stop()

    stop_at_signals(reactor, stop)
    if end_with_stdin:
        _when_stdin_ends(lambda: reactor.callFromThread(stop))
    reactor.callWhenRunning(start)
    reactor.run(installSignalHandlers=False)
    return status


def _begin_to_collect(reactor: Reactor) -> None:
    """Begin to collect garbage, and to give freed memory back, after the start."""
    from kshim.cli import collector
    from kshim.cli.freed_memory import FreedMemory, new_trim

    collector.begin()
    if (trim := new_trim()) is not None:
        FreedMemory(reactor, trim).begin()


def _new_server(config: Config, reactor: Reactor) -> Server[Broker] | Server[Here]:
    from kshim.server.parts import Parts
    from kshim.server.server import Server

    parts = Parts(config, reactor)
    if config.upstream:
        from kshim.upstream.backend import UpstreamBackend

        return Server(parts, UpstreamBackend(parts))
    from kshim.server.local import LocalBackend, new_store

    return Server(parts, LocalBackend(parts, new_store(config, reactor)))


def _when_stdin_ends(call: Callable[[], None]) -> None:
    """Call `call` on another thread when standard input ends: the process at its other end is gone."""

    def read() -> None:
        while os.read(0, 4096):
            pass
        call()

    threading.Thread(target=read, name="stdin", daemon=True).start()


def _take_all_descriptors() -> None:
    """Raise the soft limit of open files to the hard limit, as the JVM does, to allow as many connections.

    The soft limit is often 1,024, and the hard limit much higher.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS allows less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _keep_freed_memory() -> None:
    """Make glibc keep up to 32 MiB of freed memory: twice the largest block that was freed so far (see
    M_MMAP_THRESHOLD in mallopt(3)).

    Requests of a megabyte come and go. Getting fresh memory for them from the system, page by page, costs
    more than handling them. Nothing is written to the block that is freed here, so it takes no memory.
    """
    bytes(LARGEST_FREED_BYTES)
