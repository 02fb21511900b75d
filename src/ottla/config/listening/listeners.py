"""Listener names, addresses and protocols: the settings that people trip over most."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.config.areas import ListenersConfig
from ottla.config.listening.sasl import read_sasl
from ottla.config.listening.tls import read_tls_listeners
from ottla.config.setting import Value
from ottla.model.cluster import Endpoint, SecurityProtocol

_LISTENER = re.compile(r"([A-Za-z0-9_.-]+)://(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]]*):(-?\d+)")
ANY_ADDRESSES = ("", "0.0.0.0", "::")


@dataclass(slots=True)
class ListenersRead:
    """The listeners as far as they could be read, and everything that is wrong with them."""

    config: ListenersConfig | None = None
    problems: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """The settings of single listeners that are obeyed."""


def read_listeners(
    values: Mapping[str, Value], host_name: Callable[[], str], properties: Mapping[str, str] | None = None
) -> ListenersRead:
    """Bring the listener settings together. ``host_name`` is asked where nothing is advertised, and
    ``properties`` hold what is set for single listeners."""
    read = ListenersRead()
    protocols = _read_protocol_map(str(values["listener.security.protocol.map"]), read.problems)
    listeners = _read_endpoints("listeners", values["listeners"], protocols, read.problems)
    if values["advertised.listeners"] is None:
        advertised = _advertise(listeners, host_name, read.problems)
    else:
        advertised = _read_endpoints(
            "advertised.listeners", values["advertised.listeners"], protocols, read.problems
        )
        _check_advertised(listeners, advertised, read.problems)
    _check_ports(listeners, read.problems)
    inter_broker = _inter_broker_name(values, read.problems)
    control_plane = values["control.plane.listener.name"]
    for setting, name in (
        ("inter.broker.listener.name", inter_broker),
        ("control.plane.listener.name", control_plane),
    ):
        known = {endpoint.listener for endpoint in advertised}
        if name is not None and not read.problems and name not in known:
            read.problems.append(f"{setting}={name}: no advertised listener has that name")
    if control_plane is not None and control_plane == inter_broker:
        read.problems.append("control.plane.listener.name must differ from inter.broker.listener.name")
    control_plane = None if control_plane is None else str(control_plane)
    of_brokers = (inter_broker, control_plane or inter_broker)
    sasl = read_sasl(properties or {}, values, listeners, of_brokers)
    read.names |= sasl.names
    read.problems += sasl.problems
    tls = read_tls_listeners(properties or {}, listeners)
    read.names |= tls.names
    read.problems += tls.problems
    if not read.problems:
        read.config = ListenersConfig(
            listeners=listeners,
            advertised_listeners=advertised,
            inter_broker_listener_name=inter_broker,
            control_plane_listener_name=control_plane,
            sasl=sasl.listeners,
            logins=sasl.logins,
            tls=tls.listeners,
        )
    return read


def _read_protocol_map(text: str, problems: list[str]) -> dict[str, SecurityProtocol]:
    protocols: dict[str, SecurityProtocol] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = pair.partition(":")
        if protocol.strip().upper() not in SecurityProtocol.__members__:
            problems.append(f"listener.security.protocol.map: {pair!r} names no security protocol")
            continue
        protocols[name.strip().upper()] = SecurityProtocol[protocol.strip().upper()]
    return protocols


def _read_endpoints(
    setting: str, text: Value, protocols: Mapping[str, SecurityProtocol], problems: list[str]
) -> tuple[Endpoint, ...]:
    endpoints: list[Endpoint] = []
    for part in filter(None, (part.strip() for part in str(text).split(","))):
        found = _LISTENER.fullmatch(part)
        if found is None or not 0 <= int(found[3]) <= 65_535:
            problems.append(f"{setting}: {part!r} is not NAME://host:port")
            continue
        name = found[1].upper()
        if name not in protocols:
            problems.append(f"{setting}: listener.security.protocol.map does not know the listener {name}")
            continue
        endpoints.append(Endpoint(name, found[2].strip("[]"), int(found[3]), protocols[name]))
    names = [endpoint.listener for endpoint in endpoints]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"{setting}: the listener name {name} appears twice")
    if not endpoints and not problems:
        problems.append(f"{setting}: at least one listener is needed")
    return tuple(endpoints)


def _advertise(
    listeners: tuple[Endpoint, ...], host_name: Callable[[], str], problems: list[str]
) -> tuple[Endpoint, ...]:
    """Unless set, the listeners themselves, with the host's name for one that listens on every address."""
    for endpoint in listeners:
        if endpoint.host in ANY_ADDRESSES[1:]:
            problems.append(
                f"advertised.listeners is not set and the listener {endpoint.listener} listens on"
                f" {endpoint.host}, where nobody can connect to: set advertised.listeners"
            )
    return tuple(
        Endpoint(endpoint.listener, endpoint.host or host_name(), endpoint.port, endpoint.security_protocol)
        for endpoint in listeners
    )


def _check_advertised(
    listeners: tuple[Endpoint, ...], advertised: tuple[Endpoint, ...], problems: list[str]
) -> None:
    known = {endpoint.listener for endpoint in listeners}
    for endpoint in advertised:
        if endpoint.host in ANY_ADDRESSES:
            where = endpoint.host or "no host"
            problems.append(f"advertised.listeners: nobody can connect to {where} ({endpoint.listener})")
        if endpoint.listener not in known:
            problems.append(f"advertised.listeners: {endpoint.listener} is not among the listeners")


def _check_ports(listeners: tuple[Endpoint, ...], problems: list[str]) -> None:
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in listeners:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, endpoints in by_port.items():
        families = {":" in endpoint.host for endpoint in endpoints}
        if len(endpoints) > len(families):
            names = ", ".join(endpoint.listener for endpoint in endpoints)
            problems.append(f"listeners: {names} have the same port {port}")


def _inter_broker_name(values: Mapping[str, Value], problems: list[str]) -> str:
    name = values["inter.broker.listener.name"]
    protocol = str(values["security.inter.broker.protocol"])
    if name is not None:
        if protocol != "PLAINTEXT":
            problems.append(
                "set either inter.broker.listener.name or security.inter.broker.protocol, not both"
            )
        return str(name).upper()
    return protocol
