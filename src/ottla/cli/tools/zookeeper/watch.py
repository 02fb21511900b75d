"""``zookeeper-shell watch``: a node and the names below it, told whenever they change."""

import queue
from datetime import datetime
from typing import TypeAlias

import typer

from ottla.cli.shared.printing import nobody_reads
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.shared.signals import Stop, stop_between
from ottla.server.zookeeper.blocking import BlockingZooKeeper
from ottla.zookeeper.ops import Children, Data, Exists, GetChildren, GetData, SessionExpired, WatchEvent

LOOK_S = 0.25

Picture: TypeAlias = tuple[str | None, frozenset[str]]
"""A node's data, ``None`` while it is not there, and the names of its children."""


def watch(session: BlockingZooKeeper, path: str) -> None:
    """Print the node as it is, then every change, until Ctrl-C or until the reader is gone."""
    shown: Picture | None = None
    with stop_between() as stop:
        while not stop.asked and not nobody_reads():
            now = _look(session, path)
            for line in told(path, shown, now):
                typer.echo(f"{datetime.now().astimezone():%H:%M:%S.%f}"[:-3] + f"  {line}")
            shown = now
            _await_change(session, stop)
    if stop.asked:
        raise typer.Exit(130)


def told(path: str, before: Picture | None, now: Picture) -> list[str]:
    """What is new, in words."""
    data, names = now
    was, had = before if before is not None else (None, frozenset())
    if data is None:
        return [f"{path} is not there"] if before is None else [f"{path} deleted"] if was is not None else []
    lines = []
    if was is None:
        lines.append(f"{path} {'is' if before is None else 'created'} {data}")
    elif data != was:
        lines.append(f"{path} changed {data}")
    lines += [f"{path} + {name}" for name in sorted(names - had)]
    lines += [f"{path} - {name}" for name in sorted(had - names)]
    return lines


def _look(session: BlockingZooKeeper, path: str) -> Picture:
    """Read the node, and arm a watch for each thing read."""
    data = session.run(GetData(path, watch=True))
    if not isinstance(data, Data):
        session.run(Exists(path, watch=True))
        return None, frozenset()
    children = session.run(GetChildren(path, watch=True))
    names = frozenset(children.names) if isinstance(children, Children) else frozenset()
    return (data.data or b"null").decode(errors="backslashreplace"), names


def _await_change(session: BlockingZooKeeper, stop: Stop) -> None:
    while not stop.asked and not nobody_reads():
        try:
            event = session.events.get(timeout=LOOK_S)
        except queue.Empty:
            continue
        if isinstance(event, SessionExpired):
            raise CommandRefused("the ZooKeeper session expired; what happened meanwhile is not known")
        if isinstance(event, WatchEvent):
            return
