"""Writes ``docs/pictures/watch.svg``: what ``ottla watch`` shows while a real cluster loses a broker."""

import io
from collections import deque
from pathlib import Path

from rich.console import Console

from ottla.cli.inspect.controller_epoch import watched_epoch
from ottla.cli.inspect.watch import EVENTS_SHOWN
from ottla.cli.inspect.watching import looks, picture
from ottla.cli.tools.topics.change import create
from ottla.client.blocking.client import Client
from ottla.insight.overview import ClusterView
from ottla.launch.cluster import Cluster

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "watch.svg"
COLUMNS = 80
SETTINGS = {"offsets.topic.num.partitions": "1", "zookeeper.session.timeout.ms": "2000"}


def main() -> None:
    """Start, kill a broker, and keep the screen of the moment when all its partitions have a new leader."""
    with (
        Cluster(brokers=3, settings=SETTINGS, sync=False) as cluster,
        Client(cluster.bootstrap_servers) as client,
        watched_epoch(cluster.zookeeper.connect) as epoch,
    ):
        for topic, partitions in (("orders", 3), ("payments", 2)):
            create(client, topic, partitions, 3, None, [], if_not_exists=False)
        events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        for count, (view, news) in enumerate(looks(client, epoch, every_ms=300, times=None)):
            events.extend(news)
            if count == 0:
                cluster.brokers[1].kill()
            elif is_over(view):
                break
    draw(view, events)
    print(f"{PICTURE.relative_to(ROOT)} is written")


def is_over(view: ClusterView) -> bool:
    """Whether broker 1 is gone and leads nothing any more."""
    gone = [row.leads for row in view.brokers if row.address is None]
    return gone == [0] and all(1 not in seen.isr for seen in view.picture.partitions.values())


def draw(view: ClusterView, events: deque[str]) -> None:
    """As a terminal of 80 columns would show it; no font is fetched from anywhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(picture(view, events))
    svg = console.export_svg(title="ottla watch")
    start, end = svg.index("@font-face"), svg.index(".terminal")
    for prefix in (".fira", ".terminal"):
        found = svg.find(prefix)
        end = min(end, found) if found >= 0 else end
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(svg[:start] + svg[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
