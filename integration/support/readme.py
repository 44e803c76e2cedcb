"""The Python blocks of the README and other pages, with the test server's address."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SPARK_PAGE = ROOT / "docs" / "spark.md"
NAMED = "127.0.0.1:9092"


def python_blocks(page: Path = README) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def block_with(word: str, bootstrap: str = NAMED, page: Path = README) -> str:
    """The only block that contains `word`, with `bootstrap` as the server's address."""
    (block,) = (block for block in python_blocks(page) if word in block)
    return block.replace(NAMED, bootstrap)
