"""python -m integration.crash: see the package."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from integration.crash.run import Broken, Crashes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-transactions", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="server setting")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="kshim-crash-"))
    options = [part for setting in arguments.set for part in ("--set", setting)]
    crashes = Crashes(
        root / "data",
        arguments.kills,
        arguments.seed,
        transactions=not arguments.no_transactions,
        options=options,
    )
    try:
        verdicts = crashes.run()
    except (Broken, AssertionError) as broken:
        print(f"BROKEN, with seed {arguments.seed}; the data is kept in {root}\n{broken}")
        return 1
    print(f"{arguments.kills} kills, up again in {median(crashes.start_s):.2f} s (p50)")
    for verdict in verdicts:
        print(
            f"{verdict.topic:14} acknowledged {verdict.acknowledged:8}  lost {verdict.lost}  "
            f"doubled {verdict.doubled}"
        )
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
