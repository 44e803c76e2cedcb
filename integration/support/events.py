"""The events that a member process prints, one line of JSON for each."""

from __future__ import annotations

import json
import sys
from typing import Any


def emit(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()
