"""``security.protocol``, ``sasl.…`` and ``ssl.…``: as whom a client logs in, and how it is encrypted."""

from collections.abc import Mapping
from typing import Final

from ottla.config.tls.settings import OF_CLIENTS, TlsSettings, read_tls
from ottla.security.jaas import JaasError, parse_jaas
from ottla.security.sasl.mechanisms import MECHANISMS, MODULES, SaslLogin
from ottla.security.secret import Secret

NAMES: Final = OF_CLIENTS | {"security.protocol", "sasl.mechanism", "sasl.jaas.config"}
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def read_login(properties: Mapping[str, str]) -> SaslLogin | None:
    """The login that Kafka's settings ask for; None without SASL. ``ValueError`` says what is wrong with
    them, and quotes no password."""
    if not _protocol(properties).startswith("SASL_"):
        return None
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise ValueError(f"sasl.mechanism={mechanism} is not supported; write one of {known}")
    example = f'sasl.jaas.config={MODULES[mechanism]} required username="alice" password="…";'
    text = properties.get("sasl.jaas.config")
    if text is None:
        raise ValueError(f"{mechanism} needs a user and a password: {example}")
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ValueError(f"sasl.jaas.config: {error}; as in {example}") from None
    if entry.module != MODULES[mechanism]:
        raise ValueError(f"sasl.jaas.config names {entry.module}, but {mechanism} needs {MODULES[mechanism]}")
    if not entry.options.get("username") or not entry.options.get("password"):
        raise ValueError(f"sasl.jaas.config needs username and password: {example}")
    return SaslLogin(mechanism, entry.options["username"], Secret(entry.options["password"]))


def read_encryption(properties: Mapping[str, str]) -> TlsSettings | None:
    """The TLS that Kafka's settings ask for; None without. ``ValueError`` says what is wrong with them."""
    if not _protocol(properties).endswith("SSL"):
        return None
    problems: list[str] = []
    settings = read_tls(properties.get, problems)
    if problems:
        raise ValueError("; ".join(problems))
    return settings


def _protocol(properties: Mapping[str, str]) -> str:
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol={protocol} is not supported; {', '.join(PROTOCOLS)} are")
    return protocol
