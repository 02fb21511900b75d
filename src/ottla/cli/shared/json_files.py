"""The JSON files that Kafka's tools take, read with messages a person can use."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ottla.cli.shared.options import read_text
from ottla.cli.shared.refusal import CommandRefused
from ottla.model.ids import TopicPartition


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file."""
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise CommandRefused(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise CommandRefused(f"{path} is not a JSON object")
    return value


def partition_rows(path: Path) -> list[tuple[TopicPartition, dict[str, Any]]]:
    """The entries of a file's ``partitions``, each with its topic and its number; none may come twice."""
    rows = read_json(path).get("partitions")
    if not isinstance(rows, list) or not rows:
        raise CommandRefused(f'{path} has no list "partitions", or an empty one')
    found = []
    for row in rows:
        match row:
            case {"topic": str(topic), "partition": int(number)} if number >= 0:
                found.append((TopicPartition(topic, number), row))
            case _:
                raise CommandRefused(f"{path}: {json.dumps(row)} names no topic and partition")
    twice = [str(name) for name, count in Counter(name for name, _ in found).items() if count > 1]
    if twice:
        raise CommandRefused(f"{path} names partitions twice: {', '.join(twice)}")
    return found
