"""A client for commands under test: each operation has its answer, and what was asked is noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

from ottla.client.blocking.client import Client
from ottla.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

Operation = Callable[..., Any]


class AnsweringClient:
    """``run(operation, ...)`` gives that operation's answer; a function as answer gets the arguments."""

    def __init__(self, answers: Mapping[Operation, Any], brokers: int = 3) -> None:
        self.asked: list[tuple[Operation, tuple[Any, ...]]] = []
        self.engine = SimpleNamespace(metadata=SimpleNamespace(brokers=dict.fromkeys(range(brokers))))
        self._answers = answers

    def run(self, operation: Operation, *arguments: Any, **_options: Any) -> Any:
        self.asked.append((operation, arguments))
        answer = self._answers[operation]
        return answer(*arguments) if callable(answer) else answer

    def arguments_of(self, operation: Operation) -> list[tuple[Any, ...]]:
        """What this operation was asked, call by call."""
        return [arguments for asked, arguments in self.asked if asked is operation]

    @property
    def as_client(self) -> Client:
        return cast("Client", self)

    @contextmanager
    def connected(self, *_arguments: Any, **_settings: Any) -> Iterator[Client]:
        """In the place of ``ottla.cli.shared.connection.connected``."""
        yield self.as_client


def described(leaders: Mapping[str, list[int]], brokers: int = 3) -> MetadataResponse:
    """Topics with the leader of each partition; -1 for none."""
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=number) for number in range(brokers)],
        topics=[
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(partition_index=index, leader_id=leader)
                    for index, leader in enumerate(of_partitions)
                ],
            )
            for name, of_partitions in leaders.items()
        ],
    )
