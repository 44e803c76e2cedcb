"""`serve`: one node of Apache Kafka, and `kshim serve --upstream` in front of it, with the same options."""

from __future__ import annotations

import argparse
import ctypes
import signal
from pathlib import Path

from integration.apache_kafka import COMMAND as APACHE_KAFKA
from integration.support.server import Server
from kshim.cli.running import run_with

PR_SET_PDEATHSIG = 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="integration.upstream")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    data_dir = Path(options.data_dir)
    data_dir.mkdir(exist_ok=True)
    given = [argument for each in options.set for argument in ("--set", each)]
    kafka = Server(data_dir / "upstream", given, command=APACHE_KAFKA, preexec=_end_with_parent).start()
    properties = dict(each.split("=", 1) for each in options.set)
    properties |= {"--listen": options.listen, "--data-dir": options.data_dir, "--upstream": kafka.bootstrap}
    try:
        run_with(properties, "info")
    finally:
        kafka.kill()


def _end_with_parent() -> None:
    """Have the system kill this process when the one that started it is gone, even by a SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
