"""The table of everything that reads bytes from outside."""

from __future__ import annotations

from tests.fuzz.batches import BATCHES, PRODUCED, RECOMPRESSED, RECORDS, RETAINED
from tests.fuzz.configs import CONFIGS, PROPERTY_FILE
from tests.fuzz.control import CONTROL
from tests.fuzz.coordinator_log import GROUP_LOG, TRANSACTION_LOG
from tests.fuzz.frames import FRAMES
from tests.fuzz.logins import JAAS, LOGINS
from tests.fuzz.messages import REQUESTS, SUBSCRIPTIONS
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        FRAMES,
        REQUESTS,
        SUBSCRIPTIONS,
        BATCHES,
        PRODUCED,
        RECORDS,
        RECOMPRESSED,
        RETAINED,
        GROUP_LOG,
        TRANSACTION_LOG,
        PROPERTY_FILE,
        CONFIGS,
        CONTROL,
        LOGINS,
        JAAS,
    )
}
