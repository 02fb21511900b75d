"""Rows for people and for programs."""

import csv
import io
import json
import select
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from ottla.cli.shared.options import Output
from ottla.insight.wording import joined


def print_rows(rows: Sequence[Mapping[str, Any]], output: Output, columns: Sequence[str] = ()) -> None:
    """Rows as JSON (one array) or CSV (with a header line: without a row, these columns)."""
    if output is Output.JSON:
        typer.echo(json.dumps(list(rows), ensure_ascii=False, indent=2))
        return
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row)) or columns
    if not names:
        return
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    typer.echo(text.getvalue(), nl=False)


def _cell(value: object) -> object:
    if isinstance(value, (list, tuple)) and not any(isinstance(part, dict) for part in value):
        return joined(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (bool, dict, list, tuple)) else value


def nobody_reads() -> bool:
    """Whether the reader of our output is gone: a command that only waits would not notice."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poller = select.poll()
    poller.register(output, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))
