"""Certificates for tests, and listeners that show them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ottla.launch.secure.certificates import Authority, Issued
from support.processes.broker_process import HOST


@cache
def authority() -> Authority:
    """Whom all trust."""
    return Authority("Test CA")


@cache
def stranger() -> Authority:
    """Whom nobody trusts."""
    return Authority("Another CA")


@cache
def of_a_broker() -> Issued:
    """For every broker of this machine."""
    return authority().issue("broker", (HOST, "localhost", "::1"))


@cache
def of_alice() -> Issued:
    return authority().issue("alice", more=(("O", "Acme, Inc"), ("OU", "dev team")))


@dataclass(frozen=True, slots=True)
class Files:
    """PEM files as settings name them."""

    ca: Path
    broker: Path
    alice: Path

    @property
    def settings(self) -> dict[str, object]:
        """What a broker, or a client without a certificate of its own, needs."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.broker,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
        }

    def client_settings(self, protocol: str = "SSL") -> dict[str, str]:
        """A client's properties, by Kafka's names."""
        return {
            "security.protocol": protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    def as_alice(self) -> dict[str, str]:
        """The same, with a certificate."""
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.alice)}
        return {**self.client_settings(), **own}


def files_in(folder: Path) -> Files:
    """The same certificates in every folder."""
    files = Files(folder / "ca.pem", folder / "broker.pem", folder / "alice.pem")
    files.ca.write_text(authority().certificate)
    files.broker.write_text(of_a_broker().both)
    files.alice.write_text(of_alice().both)
    return files


def a_client_context(files: Files, own: Path | None = None) -> ssl.SSLContext:
    """Python's own, not ours."""
    context = ssl.create_default_context(cafile=str(files.ca))
    if own is not None:
        context.load_cert_chain(str(own))
    return context
