"""`serve`, with the options of `kshim serve` and `--upstream`."""

from __future__ import annotations

import argparse
import ctypes
import signal
import sys
from pathlib import Path
from typing import Any

from twisted.internet import epollreactor
from twisted.python.failure import Failure

from integration.apache_kafka import COMMAND as APACHE_KAFKA
from integration.support.server import Server
from integration.upstream.memory import MemoryShards
from kshim.cli import logs
from kshim.configs.config import new_config
from kshim.configs.endpoint import Endpoint
from kshim.configs.upstream import UpstreamConfig
from kshim.service import Addresses
from kshim.upstream.interfaces import NewShards
from kshim.upstream.service import UpstreamServer
from kshim.upstream.shards.sharing import SharedShards

PR_SET_PDEATHSIG = 1


def serve(properties: dict[str, str], upstream: UpstreamConfig, new_shards: NewShards) -> int:
    """Run until SIGTERM; returns the exit status."""
    epollreactor.install()
    from twisted.internet import reactor as installed

    reactor: Any = installed
    logs.start("info")
    logs.take_in_twisted()
    config, _ = new_config(properties)
    server = UpstreamServer(config, upstream, reactor, new_shards)
    status = 0

    def ready(addresses: Addresses) -> None:
        print(f"kshim ready {','.join(map(str, next(iter(addresses.values()))))}", flush=True)

    def failed(failure: Failure) -> None:
        nonlocal status
        status = 2
        print(f"kshim: {failure.value!r}", file=sys.stderr)
        reactor.stop()

    def start() -> None:
        reactor.addSystemEventTrigger("before", "shutdown", server.stop)
        server.start().addCallbacks(ready, failed)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: reactor.callFromThread(reactor.stop))
    reactor.callWhenRunning(start)
    reactor.run(installSignalHandlers=False)
    return status


def main() -> None:
    parser = argparse.ArgumentParser(prog="integration.upstream")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--upstream", default="")
    parser.add_argument("--shared", action="store_true", help="keep the groups in the upstream")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    properties = dict(each.split("=", 1) for each in options.set)
    properties |= {"--listen": options.listen, "--data-dir": options.data_dir}
    new_shards = SharedShards if options.shared else MemoryShards
    if options.upstream:
        sys.exit(serve(properties, _upstream(options.upstream), new_shards))
    data_dir = Path(options.data_dir)
    data_dir.mkdir(exist_ok=True)
    given = [argument for each in options.set for argument in ("--set", each)]
    kafka = Server(data_dir / "upstream", given, command=APACHE_KAFKA, preexec=_end_with_parent).start()
    try:
        status = serve(properties, _upstream(kafka.bootstrap), new_shards)
    finally:
        kafka.kill()
    sys.exit(status)


def _end_with_parent() -> None:
    """Have the system kill this process when the one that started it is gone, even by a SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _upstream(addresses: str) -> UpstreamConfig:
    return UpstreamConfig(bootstrap_servers=tuple(map(Endpoint.parse, addresses.split(","))))


if __name__ == "__main__":
    main()
