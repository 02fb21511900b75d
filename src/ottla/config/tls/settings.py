"""``ssl.…`` settings out of a file: one reader for listeners, connections between brokers, and clients."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ottla.security.secret import Secret
from ottla.security.tls.ciphers import OF_TLS_1_3, openssl_name
from ottla.security.tls.mapping import BadRules, PrincipalMapping

NAMES: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.principal.mapping.rules",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""What is obeyed."""
OF_CLIENTS: Final = NAMES - {"ssl.client.auth", "ssl.principal.mapping.rules"}
REFUSED: Final = ("ssl.engine.factory.class", "ssl.provider", "ssl.secure.random.implementation")
"""They would replace TLS itself: nobody may believe that they do."""
PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
CLIENT_AUTH: Final = ("none", "requested", "required")

Get = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """A file, or PEM texts in its place."""

    location: str = ""
    password: Secret | None = None
    key_password: Secret | None = None
    certificates: str = field(default="", repr=False)
    key: Secret | None = None

    def __bool__(self) -> bool:
        return bool(self.location or self.certificates)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """All that makes TLS connections of one kind."""

    keystore: StoreSettings = StoreSettings()
    truststore: StoreSettings = StoreSettings()
    """Nothing: whom the system trusts."""
    client_auth: str = "none"
    protocols: tuple[str, ...] = PROTOCOLS
    ciphers: tuple[str, ...] = ()
    """OpenSSL's names; nothing: its defaults."""
    checks_host: bool = True
    mapping: PrincipalMapping = field(default_factory=lambda: PrincipalMapping(None))


def read_tls(get: Get, problems: list[str], *, prefix: str = "") -> TlsSettings:
    """The settings as ``get`` knows them; what is wrong goes to ``problems``, ``prefix`` before the names."""
    reader = _Reader(get, problems, prefix)
    for name in REFUSED:
        if reader.text(name):
            reader.wrong(name, "Ottla does not do this yet", shown=reader.text(name))
    protocols = reader.listed("ssl.enabled.protocols", PROTOCOLS) or PROTOCOLS
    protocols, ciphers = _suites(reader, protocols)
    algorithm = get("ssl.endpoint.identification.algorithm")
    if algorithm is not None and algorithm.strip().lower() not in ("", "https"):
        reader.wrong("ssl.endpoint.identification.algorithm", "write https, or nothing", shown=algorithm)
    return TlsSettings(
        keystore=_keystore(reader),
        truststore=_truststore(reader),
        client_auth=reader.one_of("ssl.client.auth", CLIENT_AUTH, "none"),
        protocols=protocols,
        ciphers=ciphers,
        checks_host=algorithm is None or bool(algorithm.strip()),
        mapping=_mapping(reader),
    )


class _Reader:
    def __init__(self, get: Get, problems: list[str], prefix: str) -> None:
        self.get = get
        self._problems = problems
        self._prefix = prefix

    def text(self, name: str) -> str:
        return (self.get(name) or "").strip()

    def secret(self, name: str) -> Secret | None:
        text = self.get(name)
        return Secret(text) if text else None

    def listed(self, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        members = tuple(part.strip() for part in self.text(name).split(",") if part.strip())
        for member in members:
            if member not in allowed:
                self.wrong(name, f"Ottla speaks {', '.join(allowed)}", shown=self.text(name))
        return members

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        text = self.text(name) or default
        if text not in allowed:
            self.wrong(name, f"write one of {', '.join(allowed)}", shown=text)
        return text

    def wrong(self, name: str, why: str, *, shown: str | None = None) -> None:
        where = self._prefix + name + ("" if shown is None else f"={shown}")
        problem = f"{where}: {why}"
        if problem not in self._problems:
            self._problems.append(problem)


def _suites(reader: _Reader, protocols: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Python cannot choose among the suites of TLS 1.3, only have it or not."""
    name = "ssl.cipher.suites"
    listed = [part.strip() for part in reader.text(name).split(",") if part.strip()]
    if not listed:
        return protocols, ()
    newer = [suite for suite in listed if suite in OF_TLS_1_3]
    if newer and len(set(newer)) < len(OF_TLS_1_3) and "TLSv1.3" in protocols:
        reader.wrong(
            name, f"list all suites of TLSv1.3 ({', '.join(OF_TLS_1_3)}) or none", shown=",".join(newer)
        )
    known = {suite: openssl_name(suite) for suite in listed if suite not in OF_TLS_1_3}
    for suite, ours in known.items():
        if ours is None:
            reader.wrong(name, "Ottla knows no such cipher suite", shown=suite)
    if not newer:
        protocols = tuple(each for each in protocols if each != "TLSv1.3")
    if not known:
        protocols = tuple(each for each in protocols if each != "TLSv1.2")
    if not protocols:
        reader.wrong(name, "no suite is of a protocol in ssl.enabled.protocols")
    return protocols, tuple(ours for ours in known.values() if ours is not None)


def _keystore(reader: _Reader) -> StoreSettings:
    kind = reader.one_of("ssl.keystore.type", STORE_TYPES, "JKS")
    location, key = reader.text("ssl.keystore.location"), reader.secret("ssl.keystore.key")
    chain = reader.text("ssl.keystore.certificate.chain")
    password = reader.secret("ssl.keystore.password")
    if key or chain:
        if location:
            reader.wrong("ssl.keystore.location", "set it, or ssl.keystore.key and its chain, not both")
        if not (key and chain):
            reader.wrong("ssl.keystore.key", "it and ssl.keystore.certificate.chain go together")
        if kind != "PEM":
            reader.wrong("ssl.keystore.key", "it is PEM: set ssl.keystore.type=PEM")
    if kind == "PEM" and password:
        reader.wrong("ssl.keystore.password", "a PEM store has no password, its key may: ssl.key.password")
    return StoreSettings(
        location=location,
        password=password,
        key_password=reader.secret("ssl.key.password"),
        certificates=chain,
        key=key,
    )


def _truststore(reader: _Reader) -> StoreSettings:
    kind = reader.one_of("ssl.truststore.type", STORE_TYPES, "JKS")
    location, certificates = (
        reader.text("ssl.truststore.location"),
        reader.text("ssl.truststore.certificates"),
    )
    password = reader.secret("ssl.truststore.password")
    if certificates and location:
        reader.wrong("ssl.truststore.location", "set it or ssl.truststore.certificates, not both")
    if certificates and kind != "PEM":
        reader.wrong("ssl.truststore.certificates", "they are PEM: set ssl.truststore.type=PEM")
    if kind == "PEM" and password:
        reader.wrong("ssl.truststore.password", "a PEM store has no password")
    return StoreSettings(location=location, password=password, certificates=certificates)


def _mapping(reader: _Reader) -> PrincipalMapping:
    try:
        return PrincipalMapping(reader.get("ssl.principal.mapping.rules"))
    except BadRules as bad:
        reader.wrong("ssl.principal.mapping.rules", str(bad))
        return PrincipalMapping(None)
