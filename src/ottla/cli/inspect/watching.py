"""The loops of ``ottla watch``: on a terminal drawn, into a pipe printed."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime

import typer
from rich.live import Live
from rich.text import Text

from ottla.cli.inspect.controller_epoch import SeenEpoch
from ottla.cli.inspect.look import look
from ottla.cli.inspect.watch import EVENTS_SHOWN
from ottla.cli.shared.printing import nobody_reads
from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.insight.delta import changes
from ottla.insight.overview import ROWS_SHOWN, ClusterView

NEWS_SEEN = 6
"""How many of the last events are always shown."""


def watch_drawn(client: Client, epoch: SeenEpoch, every_ms: int, times: int | None) -> None:
    """The screen, drawn anew at every look."""
    events: deque[str] = deque(maxlen=EVENTS_SHOWN)
    with Live(Text("looking"), auto_refresh=False, screen=False) as live:
        for view, news in looks(client, epoch, every_ms, times):
            events.extend(reversed(news))  # If there are too many, the newest stay.
            live.update(picture(view, events, live.console.size.height), refresh=True)


def picture(view: ClusterView, events: Iterable[str], height: int | None = None) -> Text:
    """The screen with what is wrong standing out. Lines that are too long are cut, not wrapped."""
    lines = [*view.lines(), "", *events] if height is None else fitted(view, list(events), height)
    text = Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
    text.highlight_regex(r"^(BROKER|PARTITION|GROUP) .*$", "bold")
    text.highlight_regex(r"all led by their preferred leader, all in sync", "green")
    text.highlight_regex(r"\d+ (offline|under min ISR)|not alive|no leader;|is gone", "bold red")
    text.highlight_regex(r"\d+ (under-replicated|not preferred|reassigning)", "yellow")
    text.highlight_regex(r"leader -?\d+ -> -?\d+|controller: broker -?\d+ -> -?\d+|is here", "bold cyan")
    return text


def fitted(view: ClusterView, events: list[str], height: int) -> list[str]:
    """As many lines as the terminal has: of partitions and groups fewer rows, so that the news are seen."""
    news = min(len(events), NEWS_SEEN)
    lines = view.lines()
    for rows in range(ROWS_SHOWN, 0, -1):
        lines = view.lines(rows)
        if len(lines) + 1 + news < height:
            break
    room = max(height - len(lines) - 2, 1)  # The last line of a terminal is the cursor's.
    return [*lines, "", *events[-room:]]


def watch_printed(client: Client, epoch: SeenEpoch, every_ms: int, times: int | None) -> None:
    """The screen once, then a line for each change."""
    is_first = True
    for view, news in looks(client, epoch, every_ms, times):
        lines = view.lines() if is_first else news
        is_first = False
        if lines:
            typer.echo("\n".join(lines))


def looks(
    client: Client, epoch: SeenEpoch, every_ms: int, times: int | None
) -> Iterator[tuple[ClusterView, list[str]]]:
    """Pictures and what changed since the one before; a look that fails is told and repeated."""
    before: ClusterView | None = None
    count = 0
    while times is None or count < times:
        if count:
            client.run_until(nobody_reads, every_ms)
            if nobody_reads():
                return
        count += 1
        try:
            view = look(client, controller_epoch=epoch.value)
        except ClientError as error:
            if before is None:
                raise
            yield before, [_stamped(f"the cluster does not answer: {error}")]
            continue
        news = [] if before is None else [_stamped(event) for event in changes(before.picture, view.picture)]
        before = view
        yield view, news


def _stamped(event: str) -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}  {event}"
