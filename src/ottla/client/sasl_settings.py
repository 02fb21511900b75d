"""``security.protocol``, ``sasl.mechanism`` and ``sasl.jaas.config``: as whom a client logs in."""

from collections.abc import Mapping
from typing import Final

from ottla.security.jaas import JaasError, parse_jaas
from ottla.security.sasl.mechanisms import MECHANISMS, MODULES, SaslLogin
from ottla.security.secret import Secret

NAMES: Final = frozenset({"security.protocol", "sasl.mechanism", "sasl.jaas.config"})
PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")


def read_login(properties: Mapping[str, str]) -> SaslLogin | None:
    """The login that Kafka's settings ask for; None with PLAINTEXT. ``ValueError`` says what is wrong with
    them, and quotes no password."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol={protocol} is not supported; {' and '.join(PROTOCOLS)} are")
    if protocol == "PLAINTEXT":
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
