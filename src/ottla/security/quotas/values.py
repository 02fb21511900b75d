"""Quotas as text, as Java writes numbers."""

from decimal import Decimal
from math import isfinite
from typing import Final

EPSILON: Final = 1e-6
MAX: Final = {"LONG": 2**63 - 1, "INT": 2**31 - 1}


class NotWhole(ValueError):
    """A quota that counts bytes or connections is no whole number, or too large."""


def stored_value(value: float, kind: str) -> str:
    """A quota of kind LONG, INT or DOUBLE as its znode has it."""
    if kind == "DOUBLE":
        return java_double(value)
    if not isfinite(value):
        raise NotWhole(value)
    limit = MAX[kind]
    whole = max(-limit - 1, min(limit, int(value + EPSILON)))
    if abs(float(whole) - value) > EPSILON:
        raise NotWhole(value)
    return str(whole)


def java_double(value: float) -> str:
    """``Double.toString``: plain between a thousandth and ten million, otherwise with an exponent."""
    if not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, numbers, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, numbers))
    assert isinstance(exponent, int), "the value is finite"
    exponent += len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:].rstrip('0') or '0'}E{exponent}"
