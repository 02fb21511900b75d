"""An Ottla broker with one rule broken on purpose, which the checker has to notice.

``python -m chaos.planted NAME FILE``
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ottla.replication.effects import HighWatermarkAdvanced
from ottla.replication.leader import PartitionLeader
from ottla.server.app import main


def ack_before_replication() -> None:
    """A leader takes a record as committed as soon as it has it itself."""

    def advance(self: PartitionLeader, now_ms: int, live: Any) -> Any:
        if self.end_offset <= self.high_watermark:
            return ()
        self.high_watermark = self.end_offset
        return [HighWatermarkAdvanced(self.end_offset)]

    PartitionLeader._try_to_advance = advance  # type: ignore[method-assign, assignment]


BUGS: dict[str, Callable[[], None]] = {"ack_before_replication": ack_before_replication}

if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
