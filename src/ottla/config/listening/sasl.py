"""How clients log in on SASL listeners, and how this broker does with others: from the file's settings.

A setting of one listener stands as ``listener.name.<listener>.<setting>``, that of one of its mechanisms as
``listener.name.<listener>.<mechanism>.<setting>``, both in lower case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.config.setting import Value
from ottla.model.cluster import Endpoint, SecurityProtocol
from ottla.security.jaas import JaasEntry, JaasError, parse_jaas
from ottla.security.sasl.mechanisms import MECHANISMS, MODULES, SaslLogin
from ottla.security.sasl.plain import NAME as PLAIN
from ottla.security.sasl.server_login import ListenerSasl
from ottla.security.secret import Secret

_WITH_LOGINS = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
NOT_OBEYED = (
    "principal.builder.class",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""They would decide who gets in: nobody may believe that they do."""
_ENABLED = "sasl.enabled.mechanisms"
_REAUTH = "connections.max.reauth.ms"
_JAAS = "sasl.jaas.config"
_INTER_BROKER = "sasl.mechanism.inter.broker.protocol"


@dataclass(slots=True)
class SaslRead:
    """What was read, the names of the listeners' own settings among it, and what is wrong."""

    listeners: dict[str, ListenerSasl] = field(default_factory=dict)
    logins: dict[str, SaslLogin] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def read_sasl(
    properties: Mapping[str, str],
    values: Mapping[str, Value],
    listeners: tuple[Endpoint, ...],
    of_brokers: tuple[str, ...],
) -> SaslRead:
    """The logins of all SASL listeners; ``of_brokers`` are those through which brokers come as well."""
    read = SaslRead()
    for endpoint in listeners:
        if endpoint.security_protocol in _WITH_LOGINS:
            one = _Listener(endpoint.listener, properties, values, read)
            read.listeners[endpoint.listener] = one.sasl()
            if endpoint.listener in of_brokers and (login := one.login()) is not None:
                read.logins[endpoint.listener] = login
    return read


class _Listener:
    """The settings of one listener."""

    def __init__(
        self, name: str, properties: Mapping[str, str], values: Mapping[str, Value], read: SaslRead
    ) -> None:
        self._name = name
        self._prefix = f"listener.name.{name.lower()}."
        self._properties = properties
        self._values = values
        self._read = read
        self._mechanisms = self._enabled()
        self._entries: dict[str, JaasEntry] = {}

    def sasl(self) -> ListenerSasl:
        """How its clients log in."""
        self._refuse_what_is_not_obeyed()
        for mechanism in self._mechanisms:
            entry = self._entry(mechanism)
            if entry is not None:
                self._entries[mechanism] = entry
        plain = self._entries.get(PLAIN)
        users = {} if plain is None else {user: Secret(text) for user, text in plain.users.items()}
        return ListenerSasl(
            mechanisms=self._mechanisms,
            plain_users=users,
            max_reauth_ms={mechanism: self._max_reauth_ms(mechanism) for mechanism in self._mechanisms},
        )

    def login(self) -> SaslLogin | None:
        """As whom this broker comes to the same listener of others."""
        mechanism = str(self._values[_INTER_BROKER])
        if mechanism not in self._mechanisms:
            self._wrong(
                f"{_INTER_BROKER}={mechanism} must be among the mechanisms of the listener {self._name},"
                f" through which brokers come: {', '.join(self._mechanisms)}"
            )
            return None
        key = self._key(_JAAS, mechanism)
        entry = self._entries.get(mechanism)
        if entry is None or not entry.options.get("username") or not entry.options.get("password"):
            if key not in self._properties or entry is not None:
                self._wrong(
                    f"{key} must say as whom this broker logs in with others:"
                    f' {MODULES[mechanism]} required username="…" password="…";'
                )
            return None
        return SaslLogin(mechanism, entry.options["username"], Secret(entry.options["password"]))

    def _enabled(self) -> tuple[str, ...]:
        own = self._own(_ENABLED)
        listed = self._values[_ENABLED] if own is None else own.split(",")
        assert isinstance(listed, tuple | list), "a list is one"
        mechanisms = tuple(name.strip() for name in listed if name.strip())
        for mechanism in mechanisms:
            if mechanism not in MECHANISMS:
                self._wrong(
                    f"{self._key(_ENABLED)}: Ottla does not speak {mechanism} yet; it speaks"
                    f" {', '.join(MECHANISMS)}"
                )
        if not mechanisms:
            self._wrong(f"{self._key(_ENABLED)} names no mechanism")
        return tuple(mechanism for mechanism in mechanisms if mechanism in MECHANISMS)

    def _entry(self, mechanism: str) -> JaasEntry | None:
        key = self._key(_JAAS, mechanism)
        text = self._own(_JAAS, mechanism)
        if text is None:
            if mechanism == PLAIN:
                self._wrong(
                    f'{key} is missing: it names the users, as in {MODULES[PLAIN]} required user_alice="…";'
                )
            return None
        try:
            entry = parse_jaas(text)
        except JaasError as error:
            self._wrong(f"{key}: {error}")
            return None
        if entry.module != MODULES[mechanism]:
            self._wrong(f"{key}: Ottla knows {MODULES[mechanism]} only, not {entry.module}")
            return None
        return entry

    def _max_reauth_ms(self, mechanism: str) -> int:
        text = self._own(_REAUTH, mechanism)
        if text is None:
            text = self._own(_REAUTH)
        if text is None:
            value = self._values[_REAUTH]
            assert isinstance(value, int), f"{_REAUTH} is a number"
            return value
        if not text.strip().isdecimal():
            self._wrong(f"{self._key(_REAUTH, mechanism)}={text} is not a number")
            return 0
        return int(text)

    def _refuse_what_is_not_obeyed(self) -> None:
        prefixes = ["", self._prefix, *(self._key("", mechanism) for mechanism in self._mechanisms)]
        for name in NOT_OBEYED:
            for prefix in prefixes:
                text = self._properties.get(prefix + name)
                if text and not text.endswith(".DefaultKafkaPrincipalBuilder"):
                    self._wrong(f"{prefix}{name}={text}: Ottla does not do this yet")

    def _key(self, name: str, mechanism: str | None = None) -> str:
        return self._prefix + ("" if mechanism is None else f"{mechanism.lower()}.") + name

    def _own(self, name: str, mechanism: str | None = None) -> str | None:
        key = self._key(name, mechanism)
        self._read.names.add(key)
        return self._properties.get(key)

    def _wrong(self, problem: str) -> None:
        if problem not in self._read.problems:
            self._read.problems.append(problem)
