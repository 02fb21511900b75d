"""From settings to what Python's ``ssl`` works with; the store's files are read here."""

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ottla.config.tls.settings import StoreSettings, TlsSettings
from ottla.security.tls.session import TlsFailed, TlsSession
from ottla.security.tls.stores import (
    BadStore,
    KeyPair,
    open_keystore,
    open_truststore,
    pem_certificates,
    pem_pair,
)

T = TypeVar("T")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsRefused(Exception):
    """The settings ask for TLS that cannot be had; the text names the setting, the place and the cause."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the stores held when they were read."""

    pair: KeyPair | None
    trusted: bytes | None


def read_material(settings: TlsSettings) -> Material:
    """Read the stores."""
    pair = _named("ssl.keystore", settings.keystore, _pair) if settings.keystore else None
    trusted = _named("ssl.truststore", settings.truststore, _trusted) if settings.truststore else None
    return Material(pair, trusted)


def _named(name: str, store: StoreSettings, read: Callable[[StoreSettings], T]) -> T:
    where = f"{name}.location={store.location}" if store.location else f"{name} (PEM in the settings)"
    try:
        return read(store)
    except BadStore as bad:
        raise TlsRefused(f"{where}: {bad}") from None
    except OSError as error:
        raise TlsRefused(f"{where}: {error.strerror or error}") from None


def _pair(store: StoreSettings) -> KeyPair:
    if store.location:
        return open_keystore(Path(store.location).read_bytes(), store.password, store.key_password)
    key = store.key.text if store.key else ""
    return pem_pair(key.encode(), store.certificates.encode(), store.key_password)


def _trusted(store: StoreSettings) -> bytes:
    if store.location:
        return open_truststore(Path(store.location).read_bytes(), store.password)
    return pem_certificates(store.certificates.encode())


def server_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """For connections that come in."""
    if material.pair is None:
        raise TlsRefused(
            "a listener with TLS needs a certificate: set ssl.keystore.location (or ssl.keystore.key and"
            " ssl.keystore.certificate.chain)"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = _VERIFY[settings.client_auth]
    # What the server sends first acknowledges the client's last word: without a ticket, clients that leave
    # Nagle's algorithm on wait 40 ms. A ticket holds for this context, so not beyond a change of stores.
    context.num_tickets = 1
    _fill(context, settings, material)
    return context


def client_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """For connections that go out."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.checks_host
    _fill(context, settings, material)
    return context


def new_client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The same, with the stores read now."""
    return client_context(settings, read_material(settings))


def _fill(context: ssl.SSLContext, settings: TlsSettings, material: Material) -> None:
    context.minimum_version = min(_VERSIONS[name] for name in settings.protocols)
    context.maximum_version = max(_VERSIONS[name] for name in settings.protocols)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # Java trusts what is in the store, root or not.
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(settings.ciphers))
        except ssl.SSLError:
            raise TlsRefused("ssl.cipher.suites: OpenSSL has none of these suites") from None
    if material.pair is not None:
        _load_pair(context, material.pair)
    if material.trusted is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=material.trusted.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise TlsRefused(f"ssl.truststore: a certificate cannot be read: {error}") from None


def _load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Python reads keys from files only: this one is in memory, and gone when it is closed."""
    memory = os.memfd_create("key")
    try:
        os.write(memory, pair.key + b"\n" + pair.certificates)
        password = pair.password.text if pair.password else ""
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=lambda: password)
    except ssl.SSLError as error:
        if pair.password and error.reason not in ("KEY_VALUES_MISMATCH",):
            raise TlsRefused(
                "ssl.keystore: its private key cannot be read: is ssl.key.password right?"
            ) from None
        raise TlsRefused(f"ssl.keystore: {_why(error)}") from None
    finally:
        os.close(memory)


def _why(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the first certificate: the own certificate stands first"
    return f"the private key or a certificate cannot be read: {error.reason or error}"


def why_not_each_other(settings: TlsSettings, material: Material, host: str) -> str | None:
    """Why two brokers with these settings would not accept each other at that host; None when they would.

    Kafka makes the same test at the start: a cluster whose brokers do not trust each other is found out then.
    """
    server = TlsSession(server_context(settings, material))
    client = TlsSession(client_context(settings, material), host)
    try:
        for _ in range(4):
            for one, other in ((client, server), (server, client)):
                try:
                    one.handshake()
                finally:
                    other.received(one.take())
            if client.is_ready and server.is_ready:
                server.read_into(memoryview(bytearray(1)))
                return None
    except TlsFailed as failed:
        return str(failed)
    return "the handshake does not end"
