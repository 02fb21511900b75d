"""Brokers and where to reach them."""

from dataclasses import dataclass, field
from enum import IntEnum

from ottla.model.ids import BrokerId


class SecurityProtocol(IntEnum):
    """What a listener speaks, by the numbers of UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener of a broker, as others see it."""

    listener: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """What a broker writes to ``/brokers/ids/<id>``; its epoch is the znode's czxid."""

    broker: BrokerId
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    features: dict[str, tuple[int, int]] = field(default_factory=dict)

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of that listener name, if the broker has one."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)
