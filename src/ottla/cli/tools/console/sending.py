"""From standard input to the producer: lines go out at once when no more of them wait."""

import os
import select
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import typer

from ottla.cli.shared.connection import CLIENT_SETTINGS, sentence
from ottla.cli.shared.refusal import CommandRefused
from ottla.cli.tools.console.lines import LineReader
from ottla.client.blocking.producer import Producer
from ottla.client.config import ProducerConfig
from ottla.client.errors import ClientError
from ottla.client.producing.batches import Delivery

READ_BYTES = 1 << 16
_OURS = frozenset({"key.serializer", "value.serializer"})
"""Kafka's console producer overrules these, too: bytes are sent as they are."""
_CHOICES: dict[str, dict[str, Any]] = {
    "acks": {"all": -1, "-1": -1, "0": 0, "1": 1},
    "compression.type": {name: name for name in ("none", "gzip", "snappy", "lz4", "zstd")},
    "enable.idempotence": {"true": True, "false": False},
}
"""What may be written, and what it means; all other settings are numbers."""

_OF_TRANSACTIONS = {"transactional_id", "transaction_timeout_ms"}
"""Settings for programs that begin and commit transactions; the tools do not."""


def producer_settings(settings: dict[str, str]) -> tuple[ProducerConfig, dict[str, str]]:
    """The producer's settings, and those of the connection; one that nobody knows is refused by name."""
    config = ProducerConfig()
    known = {field.name for field in fields(ProducerConfig)} - _OF_TRANSACTIONS
    for name, text in settings.items():
        if name in CLIENT_SETTINGS or name in _OURS:
            continue
        attribute = name.replace(".", "_")
        if attribute not in known:
            supported = sorted({*(known_name.replace("_", ".") for known_name in known), *CLIENT_SETTINGS})
            raise CommandRefused(
                f"the producer's setting {name} is not supported; those that are: {', '.join(supported)}"
            )
        config = replace(config, **{attribute: _value(name, text)})
    return config, {name: text for name, text in settings.items() if name in CLIENT_SETTINGS}


def _value(name: str, text: str) -> Any:
    choices = _CHOICES.get(name)
    if choices is not None and text in choices:
        return choices[text]
    if choices is None and text.isdecimal():
        return int(text)
    allowed = "a number" if choices is None else " or ".join(choices)
    raise CommandRefused(f"{name}={text} makes no sense; write {allowed}")


def send_lines(producer: Producer, topic: str, reader: LineReader, *, is_sync: bool) -> None:
    """Send every line; raise at the end if a record was not delivered."""
    failures: list[ClientError] = []

    def note(delivery: Delivery) -> None:
        if delivery.error is not None:
            failures.append(delivery.error)
            typer.echo(f"ottla: not delivered: {sentence(delivery.error)}", err=True)

    try:
        for number, line in enumerate(_lines(producer), 1):
            key, value, headers = reader.read(line, number)
            producer.send(topic, value, key=key, headers=headers).when_done(note)
            if is_sync:
                producer.flush()
    finally:
        producer.close()
    if failures:
        raise CommandRefused(f"{len(failures)} record(s) were not delivered")


def _lines(producer: Producer) -> Iterator[bytes]:
    """Lines without their end; while none is there, what was sent goes out."""
    source = sys.stdin.fileno()
    is_terminal = sys.stdin.isatty()
    pending = b""
    while True:
        if not select.select([source], [], [], 0)[0]:
            producer.flush()
            if is_terminal:
                typer.echo(">", nl=False)
        read = os.read(source, READ_BYTES)
        if not read:
            break
        *lines, pending = (pending + read).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)
    if pending:
        yield pending.removesuffix(b"\r")
