"""The README's Python, as it stands there, with the test server's address for the one it names."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
NAMED = "127.0.0.1:9092"


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def block_with(word: str, bootstrap: str = NAMED) -> str:
    """The one block that has `word`, for the server at `bootstrap`."""
    (block,) = (block for block in python_blocks() if word in block)
    return block.replace(NAMED, bootstrap)
