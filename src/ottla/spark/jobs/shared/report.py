"""What a job has to say: while it runs, when it is cut short, and at its end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Tell = Callable[[str], None]


@dataclass(slots=True)
class Progress:
    """A job under way: ``tell`` shows a line, ``left`` is what it would leave if it were cut short now."""

    tell: Tell
    left: str = "nothing was written"


@dataclass(slots=True)
class Table:
    """Rows under a title."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[object]]


@dataclass(slots=True)
class Report:
    """A job's summary. ``is_well`` false makes the command end with exit code 1."""

    headline: str
    tables: list[Table] = field(default_factory=list)
    is_well: bool = True

    def lines(self) -> Iterable[str]:
        """The report as plain text."""
        for table in self.tables:
            if not table.rows:
                continue
            yield table.title
            cells = [[str(name) for name in table.columns]]
            cells += [["-" if cell is None else str(cell) for cell in row] for row in table.rows]
            widths = [max(len(row[n]) for row in cells) for n in range(len(table.columns))]
            for row in cells:
                yield (
                    "  "
                    + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                )
        yield self.headline
