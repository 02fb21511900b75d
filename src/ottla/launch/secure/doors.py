"""A cluster on this machine that nobody enters without TLS and a login: what its brokers and clients need."""

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ottla.config.authorizer import ACL_AUTHORIZER, CLASS, SUPER_USERS
from ottla.config.properties import parse_properties, properties_text
from ottla.config.tls.contexts import new_client_context
from ottla.config.tls.settings import StoreSettings, TlsSettings
from ottla.launch.kafka_probe import ClusterSeen, Way, see_cluster
from ottla.launch.refusal import LaunchRefused
from ottla.launch.secure.certificates import NO_LIBRARY, Authority, Issued
from ottla.launch.secure.client_files import client_files
from ottla.security.sasl.mechanisms import MODULES, SaslLogin
from ottla.security.secret import Secret

NAME: Final = "secure"
"""The directory below the cluster's, for its owner alone."""
MECHANISM: Final = "SCRAM-SHA-512"
BROKER, ADMIN = "broker", "admin"
PASSWORD_BYTES: Final = 18
_CA, _CA_KEY, _BROKERS, _PASSWORDS = "ca.pem", "ca-key.pem", "brokers.pem", "passwords.properties"

AddUser = Callable[[str, str, Secret], None]
"""Writes a user's credential to ZooKeeper: connect string, user, password."""


class ClosedDoors:
    """The authority, certificates and users of one cluster; made once, and kept in its directory."""

    def __init__(self, data_dir: Path, add_user: AddUser) -> None:
        self.directory = data_dir / NAME
        self._add_user = add_user
        self._passwords: dict[str, str] = {}
        self._way: Way | None = None

    @property
    def client_properties(self) -> Path:
        """The file for Java's clients, Kafka's tools and every ``ottla`` command."""
        return self.directory / "client.properties"

    def prepare(self, connect: str, bootstrap_servers: str) -> list[Path]:
        """Make what is missing, when ZooKeeper runs and no broker does yet; the files for clients."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            authority = self._authority()
        except ImportError:
            raise LaunchRefused(NO_LIBRARY) from None
        brokers = authority.issue("brokers of this machine", _names_of_this_machine())
        _keep(self.directory / _BROKERS, brokers.both)
        self._passwords = self._read_passwords()
        for user, password in self._passwords.items():
            self._add_user(connect, user, Secret(password))
        login = SaslLogin(MECHANISM, ADMIN, Secret(self._passwords[ADMIN]))
        trust = TlsSettings(truststore=StoreSettings(location=str(self.directory / _CA)))
        self._way = Way(new_client_context(trust), login)
        files = client_files(
            bootstrap_servers, self.directory / _CA, ADMIN, self._passwords[ADMIN], MECHANISM
        )
        for name, text in files.items():
            _keep(self.directory / name, text)
        return [self.directory / name for name in files]

    def settings(self, address: str) -> dict[str, str]:
        """Lines of a broker's ``server.properties``."""
        own = f'username="{BROKER}" password="{self._passwords[BROKER]}"'
        of_scram = f"listener.name.sasl_ssl.{MECHANISM.lower()}."
        return {
            "listeners": f"SASL_SSL://{address}",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.enabled.mechanisms": MECHANISM,
            f"{of_scram}sasl.jaas.config": f"{MODULES[MECHANISM]} required {own};",
            CLASS: ACL_AUTHORIZER,
            SUPER_USERS: f"User:{BROKER};User:{ADMIN}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / _BROKERS),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / _CA),
        }

    def see(self, host: str, port: int) -> ClusterSeen | None:
        """What the broker there says of the cluster."""
        return see_cluster(host, port, way=self._way)

    def _authority(self) -> Authority:
        ca, key = self.directory / _CA, self.directory / _CA_KEY
        if ca.exists() and key.exists():
            return Authority.known(Issued(key.read_text(), ca.read_text()))
        authority = Authority(f"Ottla on {socket.gethostname()}"[:64])
        _keep(key, authority.issued.key)
        _keep(ca, authority.certificate)
        return authority

    def _read_passwords(self) -> dict[str, str]:
        file = self.directory / _PASSWORDS
        known = parse_properties(file.read_text(encoding="utf-8")) if file.exists() else {}
        passwords = {
            user: known.get(user) or secrets.token_urlsafe(PASSWORD_BYTES) for user in (BROKER, ADMIN)
        }
        _keep(file, properties_text(passwords))
        return passwords


def _names_of_this_machine() -> list[str]:
    names = ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn())
    return list(dict.fromkeys(name for name in names if name.isascii()))


def _keep(file: Path, text: str) -> None:
    """Write it whole, for its owner alone."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    fresh.replace(file)
