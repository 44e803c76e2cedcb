"""python -m integration.hostile.invented: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.hostile.attack import MB
from integration.hostile.invented.search import SERVER_HISTORIES, play
from integration.hostile.run import Patience


def main(words: Sequence[str] | None = None) -> int:
    """Returns exit status 1 if a bound was broken. words: instead of the command's own arguments."""
    parser = argparse.ArgumentParser(prog="python -m integration.hostile.invented", description=__doc__)
    parser.add_argument("--histories", type=int, default=SERVER_HISTORIES, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="of the first history")
    parser.add_argument("--memory", action="store_true", help="servers with --data-dir :memory:")
    arguments = parser.parse_args(words)
    end = arguments.seed + arguments.histories
    began_s, requests, broken = time.monotonic(), 0, 0
    worst_ms, peak_bytes, kept_bytes, sent_bytes = 0.0, 0, 0, 0
    for first in range(arguments.seed, end, SERVER_HISTORIES):
        seeds = range(first, min(end, first + SERVER_HISTORIES))
        with tempfile.TemporaryDirectory(prefix="kshim-invented-") as directory:
            data_dir = Path(":memory:") if arguments.memory else Path(directory) / "data"
            for played in play(seeds, data_dir, Patience(beside_load=True)):
                requests += sum(step.repeats * step.connections for step in played.steps)
                worst_ms, peak_bytes = max(worst_ms, played.worst_ms), max(peak_bytes, played.peak_bytes)
                kept_bytes, sent_bytes = max(kept_bytes, played.kept_bytes), sent_bytes + played.sent_bytes
                if played.faults:
                    broken += 1
                    print(played, flush=True)
        print(
            f"{seeds.stop - arguments.seed:,} histories, {requests:,} requests, {sent_bytes // MB:,} MB, "
            f"{time.monotonic() - began_s:,.0f} s: {broken} broke a bound; at most {worst_ms:.0f} ms, "
            f"peak {peak_bytes // MB:,} MB, kept {kept_bytes // MB:,} MB",
            flush=True,
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
