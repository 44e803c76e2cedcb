"""What a member process tells, a line of JSON for each event."""

from __future__ import annotations

import json
import sys
from typing import Any


def emit(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()
