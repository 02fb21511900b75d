"""Where a broker stands in its life."""

from enum import Enum


class BrokerState(Enum):
    """A broker starts, serves, and stops; there is no way back."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
