"""The mechanisms that Ottla speaks, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.security.sasl.outcome import ClientMechanism
from ottla.security.sasl.plain import NAME as PLAIN
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram import HASHES
from ottla.security.sasl.scram_client import ScramClient
from ottla.security.secret import Secret

MECHANISMS: Final = (PLAIN, *HASHES)
_PACKAGE: Final = "org.apache.kafka.common.security"
MODULES: Final = {
    PLAIN: f"{_PACKAGE}.plain.PlainLoginModule",
    **dict.fromkeys(HASHES, f"{_PACKAGE}.scram.ScramLoginModule"),
}
"""The login module that a mechanism's JAAS text names."""


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """With what a client logs in."""

    mechanism: str
    user: str
    password: Secret

    def begin(self, make_nonce: Callable[[], str]) -> ClientMechanism:
        """One login."""
        if self.mechanism == PLAIN:
            return PlainClient(self.user, self.password)
        return ScramClient(self.mechanism, self.user, self.password, make_nonce())
