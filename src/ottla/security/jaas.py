"""The text of ``sasl.jaas.config``: one login module and its options, as Kafka reads it.

``org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="secret";``

Java's tokenizer decides what a bare word is: letters, digits, ``. - _ $`` and what is not ASCII, without a
digit, a point or a minus at its beginning. All else stands in quotes. A lone ``/`` begins a comment, too.
"""

import re
from dataclasses import dataclass, field
from typing import Final

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""
    (?P<blank>[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/|/\*.*|/[^\r\n]*)
    | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][-\w.$\u00a0-\U0010ffff]*)
    | (?P<quoted>"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*')
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)


class JaasError(ValueError):
    """The text is no JAAS configuration. The words quote none of its values: they may be passwords."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module; its options may be passwords."""

    module: str
    options: dict[str, str] = field(repr=False)

    @property
    def users(self) -> dict[str, str]:
        """Password by user: the options ``user_<name>``."""
        prefix = "user_"
        return {
            key.removeprefix(prefix): value for key, value in self.options.items() if key.startswith(prefix)
        }


def parse_jaas(text: str) -> JaasEntry:
    """The one module of the text; ``JaasError`` says what is wrong, and at which column."""
    tokens = _Tokens(text)
    module = tokens.value("the name of a login module is missing")
    flag = tokens.value(f"a control flag is missing behind the module: write {FLAGS[0]}")
    if flag.lower() not in FLAGS:
        raise JaasError(f"{flag!r} is no control flag: write {FLAGS[0]}")
    options: dict[str, str] = {}
    while not tokens.take(";"):
        key = tokens.value("the entry does not end with a semicolon")
        if not tokens.take("="):
            raise JaasError(f"Value not specified for key '{key}' {tokens.where}")
        options[key] = tokens.value(
            f"Value not specified for key '{key}': numbers and signs need quotes, as in {key}=\"…\""
        )
    if not tokens.is_over:
        raise JaasError(f"only one login module is allowed, and another one begins {tokens.where}")
    return JaasEntry(module, options)


class _Tokens:
    """What is left of the text."""

    def __init__(self, text: str) -> None:
        self._tokens = [found for found in _TOKEN.finditer(text) if found.lastgroup != "blank"]
        self._next = 0
        self._length = len(text)

    @property
    def is_over(self) -> bool:
        return self._next >= len(self._tokens)

    @property
    def where(self) -> str:
        """The place of the next token."""
        column = self._length if self.is_over else self._tokens[self._next].start()
        return f"(column {column + 1})"

    def take(self, sign: str) -> bool:
        """Whether the next token is this sign; then it is taken."""
        is_it = not self.is_over and self._tokens[self._next][0] == sign
        self._next += is_it
        return is_it

    def value(self, otherwise: str) -> str:
        """The next word or quoted text."""
        kind = None if self.is_over else self._tokens[self._next].lastgroup
        if kind not in ("word", "quoted"):
            raise JaasError(f"{otherwise} {self.where}")
        text = self._tokens[self._next][0]
        self._next += 1
        return text if kind == "word" else _ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    if letter[0] in "01234567":
        return chr(int(letter, 8))
    return _ESCAPES.get(letter, letter)
