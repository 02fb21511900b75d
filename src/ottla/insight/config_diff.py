"""Which settings differ: set against default, broker against broker, topic against topic."""

from collections.abc import Mapping
from dataclasses import dataclass

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting, and its value on each side; a side that has not got it is not named."""

    name: str
    values: dict[str, str]


def differences(sides: Mapping[str, Values], *, but: frozenset[str] = frozenset()) -> list[Difference]:
    """Settings that are not the same on all sides; ``but`` names those that differ by nature."""
    names = sorted({name for values in sides.values() for name in values} - but)
    found = []
    for name in names:
        values = {side: settings[name] for side, settings in sides.items() if name in settings}
        if len(values) < len(sides) or len(set(values.values())) > 1:
            found.append(Difference(name, values))
    return found


def against_defaults(values: Values, defaults: Values) -> list[Difference]:
    """Settings that somebody set to something else than the default."""
    return [
        Difference(name, {"set": value, "default": defaults.get(name, "")})
        for name, value in sorted(values.items())
        if defaults.get(name) != value
    ]
