"""How the connections of TLS listeners are encrypted, from the file's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.config.tls.settings import NAMES, REFUSED, TlsSettings, read_tls
from ottla.model.cluster import Endpoint, SecurityProtocol

_ENCRYPTED = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
_CLIENT_AUTH = "ssl.client.auth"


@dataclass(slots=True)
class TlsRead:
    """What was read, the names of the listeners' own settings among it, and what is wrong."""

    listeners: dict[str, TlsSettings] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def read_tls_listeners(properties: Mapping[str, str], listeners: tuple[Endpoint, ...]) -> TlsRead:
    """The settings of all TLS listeners: each one's own count before those of all."""
    read = TlsRead()
    for endpoint in listeners:
        if endpoint.security_protocol in _ENCRYPTED:
            prefix = f"listener.name.{endpoint.listener.lower()}."
            read.names |= {prefix + name for name in NAMES.union(REFUSED)}
            has_logins = endpoint.security_protocol is SecurityProtocol.SASL_SSL

            def get(name: str, prefix: str = prefix, has_logins: bool = has_logins) -> str | None:
                own = properties.get(prefix + name)
                # As in Kafka: who logs in need not show a certificate as well, unless this listener says so.
                return (
                    properties.get(name) if own is None and not (has_logins and name == _CLIENT_AUTH) else own
                )

            read.listeners[endpoint.listener] = settings = read_tls(get, read.problems)
            if not settings.keystore:
                read.problems.append(
                    f"listeners: {endpoint.listener} speaks {endpoint.security_protocol.name} and has no"
                    f" certificate: set ssl.keystore.location, or {prefix}ssl.keystore.location"
                )
    return read
