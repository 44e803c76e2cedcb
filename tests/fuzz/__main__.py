"""`python -m tests.fuzz [TARGET…] --executions N [--seed S]` fuzzes what reads bytes from outside."""

from __future__ import annotations

import argparse
import sys
import time
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.guided import run_guided
from tests.fuzz.search import Search
from tests.fuzz.target import Finding
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Returns exit status 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument(
        "--executions", type=int, default=10_000, help="of each target (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="directory for inputs")
    parser.add_argument("--unguided", action="store_true", help="without atheris, also where it is installed")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    is_guided = not arguments.unguided and find_spec("atheris") is not None
    findings = 0
    for name in arguments.targets or TARGETS:
        started = time.monotonic()
        if is_guided:
            executions, kept, found = run_guided(
                name, arguments.executions, arguments.seed, arguments.findings
            )
        else:
            search = Search(TARGETS[name], arguments.seed, found=lambda it: told(it, arguments.findings))
            search.run(arguments.executions)
            executions, kept, found = search.executions, len(search.corpus), len(search.findings)
        a_second = executions / (time.monotonic() - started)
        counts = f"{executions:9,} executions, {a_second:7,.0f} a second, {kept:6,} kept, {found} findings"
        print(f"{name:16} {counts}", flush=True)
        findings += found
    return 1 if findings else 0


def told(finding: Finding, directory: Path) -> None:
    """Write the input of a finding to a file, and print its name and what went wrong."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{finding.target}-{sha256(finding.data).hexdigest()[:10]}"
    path.write_bytes(finding.data)
    print(f"{path}: {finding.report.rstrip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
