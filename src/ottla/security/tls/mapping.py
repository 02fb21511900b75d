"""``ssl.principal.mapping.rules``: from the name in a certificate to the name of a user, as Kafka does it.

The rules are cut by this expression, not at commas, and a rule's pattern must match the whole name before
each of its matches is replaced: both are Kafka's, and files depend on them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,|$)")
_PARSER: Final = re.compile(_RULE)


class BadRules(ValueError):
    """The rules cannot be read; the text says which one."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    change: Callable[[str], str]

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        return self.change(self.pattern.sub(self._expand, name))

    def _expand(self, found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in self.replacement)


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, text: str | None) -> None:
        """``BadRules`` if they cannot be read."""
        self.text = "DEFAULT" if text is None else text
        self._rules = [rule for part in _SPLITTER.finditer(self.text.strip()) for rule in _read(part[1])]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrincipalMapping) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"PrincipalMapping({self.text!r})"

    def name_of(self, subject: str) -> str | None:
        """The user's name; None if no rule applies, and then nobody gets in."""
        names = (rule.apply(subject) if rule is not None else subject for rule in self._rules)
        return next((name for name in names if name is not None), None)


def _read(text: str) -> list[_Rule | None]:
    """One rule, None for DEFAULT; an empty one is none."""
    found = _PARSER.match(text)
    if found is None or found.end() != len(text):
        raise BadRules(
            f"{text!r} is no rule: write DEFAULT or RULE:pattern/replacement/ with L or U behind it"
        )
    if found[1] is not None:
        return [None]
    if found[2] is None:
        return []
    try:
        pattern = re.compile(
            found[2].replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
        )
    except re.error as error:
        raise BadRules(f"{text!r}: the pattern cannot be read: {error}") from None
    change: dict[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper}
    return [_Rule(pattern, _replacement(text, found[4], pattern.groups), change.get(found[6], str))]


def _replacement(rule: str, text: str, groups: int) -> tuple[str | int, ...]:
    """What stands for a match. A number without a group stands for itself if the pattern has any group."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts.append(text[at + 1])
            at += 2
            continue
        number = re.match(r"\$(\d+)", text[at:])
        if number is None:
            if text[at] == "$":
                raise BadRules(
                    f"{rule!r}: $ stands before the number of a group; write \\$ for the sign itself"
                )
            parts.append(text[at])
            at += 1
            continue
        digits = number[1]
        while len(digits) > 1 and int(digits) > groups:
            digits = digits[:-1]
        if int(digits) <= groups:
            parts.append(int(digits))
        elif groups:
            parts.append(f"${digits}")
        else:
            raise BadRules(f"{rule!r}: ${digits}, but the pattern has no group")
        at += 1 + len(digits)
    return tuple(parts)
