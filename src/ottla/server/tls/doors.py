"""What TLS connections begin with: one context a listener, made anew when a file of its stores changes."""

import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.config.tls.contexts import Material, TlsRefused, client_context, read_material, server_context
from ottla.config.tls.settings import TlsSettings
from ottla.security.tls.dn import end_of, subject_of

log = logging.getLogger(__name__)

SOON_DAYS = 30
"""A certificate that ends sooner is told of at the start, and when it is read again."""


@dataclass(slots=True)
class _Door:
    settings: TlsSettings
    material: Material
    server: ssl.SSLContext
    client: ssl.SSLContext
    state: tuple[tuple[int, int] | None, ...]


class TlsDoors:
    """The contexts of all TLS listeners, and for reaching the same listeners of other brokers."""

    def __init__(self, listeners: Mapping[str, TlsSettings]) -> None:
        """``TlsRefused`` says which listener has no sound stores."""
        self._doors: dict[str, _Door] = {}
        for listener, settings in listeners.items():
            try:
                self._doors[listener] = _open(settings)
            except TlsRefused as refused:
                raise TlsRefused(f"the listener {listener}: {refused}") from None

    def __bool__(self) -> bool:
        return bool(self._doors)

    def __contains__(self, listener: str) -> bool:
        return listener in self._doors

    def server(self, listener: str) -> ssl.SSLContext:
        """For a client that comes in now."""
        return self._doors[listener].server

    def client(self, listener: str) -> ssl.SSLContext | None:
        """For reaching that listener of another broker; None where it is not encrypted."""
        door = self._doors.get(listener)
        return door.client if door is not None else None

    def material(self, listener: str) -> Material:
        """What the listener's stores hold."""
        return self._doors[listener].material

    def ends(self) -> dict[str, int]:
        """When each listener's own certificate ends, in seconds since 1970."""
        pairs = ((listener, door.material.pair) for listener, door in self._doors.items())
        return {listener: end_of(pair.own_certificate) for listener, pair in pairs if pair is not None}

    def subject(self, listener: str) -> str | None:
        """Whom the listener's own certificate names."""
        door = self._doors.get(listener)
        pair = None if door is None else door.material.pair
        return None if pair is None else subject_of(pair.own_certificate)

    def warn_of_ends(self) -> None:
        """Tell of certificates that end soon, or have ended."""
        for listener, end in self.ends().items():
            days = (end - time.time()) / 86_400
            if days < SOON_DAYS:
                when = "has ended" if days < 0 else f"ends in {days:.0f} days"
                log.warning(
                    "the certificate of a listener %s listener=%s: replace its key store", when, listener
                )

    def look(self, settings: Mapping[str, TlsSettings]) -> None:
        """Take up settings that changed and files that were replaced; while one cannot be read, all stays."""
        for listener, door in self._doors.items():
            wanted = settings.get(listener, door.settings)
            state = _state(wanted)
            if state == door.state and wanted == door.settings:
                continue
            door.state, door.settings = state, wanted
            try:
                self._doors[listener] = _open(wanted)
                log.info("the stores were read again listener=%s", listener)
            except TlsRefused as refused:
                log.error("stores cannot be read, the old ones stay listener=%s reason=%s", listener, refused)


def _open(settings: TlsSettings) -> _Door:
    state = _state(settings)
    material = read_material(settings)
    server = server_context(settings, material)
    return _Door(settings, material, server, client_context(settings, material), state)


def _state(settings: TlsSettings) -> tuple[tuple[int, int] | None, ...]:
    """What changes when somebody replaces a store."""
    return tuple(_stamp(store.location) for store in (settings.keystore, settings.truststore))


def _stamp(location: str) -> tuple[int, int] | None:
    try:
        stat = Path(location).stat() if location else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ino) if stat is not None else None
