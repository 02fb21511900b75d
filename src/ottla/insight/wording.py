"""Numbers, lists, times and tables as people read them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


def joined(values: Iterable[object]) -> str:
    """``1,2,3``."""
    return ",".join(str(value) for value in values)


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 partition``, ``3,333 partitions``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def named(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many there are beyond them."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Left-aligned columns, each as wide as its widest cell."""
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def time_text(time_ms: int) -> str:
    """UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


def size_text(count: float) -> str:
    """``1.5 MB``."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration_text(seconds: float) -> str:
    """``0.66 s``, ``4 min 10 s``, ``3 h 5 min``, ``2 days``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7_200:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} days"
