"""One worker as a process of its own: ``python -m chaos.workers TASK``, with orders on standard input."""

from __future__ import annotations

import faulthandler
import signal
import sys

from chaos.workers import churn, committed, copier, member, producer, reader
from chaos.workers.common import Orders, Task

KINDS = {
    "producer": producer.work,
    "reader": reader.work,
    "member": member.work,
    "churn": churn.work,
    "copier": copier.work,
    "committed": committed.work,
}


def main() -> None:
    faulthandler.register(signal.SIGUSR1)  # where it hangs, should it hang
    task = Task.from_text(sys.argv[1])
    KINDS[task.kind](task, Orders())


main()
