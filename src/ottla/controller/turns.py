"""A turn: one event, decided to its end. Where it wants a write it stops, and goes on with the outcome.

Duties are generators, so that each reads from top to bottom in the order of Kafka's flow; a turn that is
halted holds nothing but values, and the same events always give the same effects.
"""

from collections.abc import Generator, Mapping
from typing import TypeAlias, TypeVar

from ottla.controller.effects import AwaitedEffect, WriteTopics
from ottla.controller.events import Outcome, TopicsWritten
from ottla.model.ids import TopicId
from ottla.model.partition_state import ReplicaAssignment

T = TypeVar("T")
Turn: TypeAlias = Generator[AwaitedEffect, Outcome, T]


class MustResign(Exception):
    """This controller cannot go on, or a later one has written a state. Never leaves the core."""


def awaited(effect: AwaitedEffect, kind: type[T]) -> Turn[T]:
    """The outcome of an effect, which is of this kind."""
    outcome = yield effect
    assert isinstance(outcome, kind), f"{type(effect).__name__} was answered by {outcome}"
    return outcome


def write_topics(
    topics: Mapping[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]], cause: str
) -> Turn[frozenset[str]]:
    """Write topic znodes, or resign; returns the topics that are not there any more."""
    outcome = yield from awaited(WriteTopics(topics, cause), TopicsWritten)
    for name, refusal in outcome.refused.items():
        raise MustResign(f"the assignment of {name} cannot be written: {refusal.why}")
    return outcome.missing
