"""A turn: one event, decided to its end. Where it orders a write it stops, and goes on with the outcome.

Duties are generators, so that each reads from top to bottom in the order of Kafka's flow; a turn that is
halted holds nothing but values, and the same events always give the same effects.
"""

from collections.abc import Generator, Mapping
from typing import TypeAlias, TypeVar

from ottla.controller.effects import Order, ReadUncleanTopics, RemoveTopics, WriteStates, WriteTopics
from ottla.controller.events import Outcome, StatesWritten, TopicsRemoved, TopicsWritten, UncleanTopicsRead
from ottla.model.ids import TopicId, TopicPartition
from ottla.model.partition_state import LeaderAndIsr, ReplicaAssignment

T = TypeVar("T")
Turn: TypeAlias = Generator[Order, Outcome, T]


class NewerController(Exception):
    """A partition state was written by a later controller: this one must give way. Never leaves the core."""


def write_states(states: Mapping[TopicPartition, LeaderAndIsr], cause: str) -> Turn[StatesWritten]:
    """Write states; the outcome names those that somebody else had changed."""
    outcome = yield WriteStates(states, cause)
    assert isinstance(outcome, StatesWritten), f"WriteStates was answered by {outcome}"
    return outcome


def write_topics(
    topics: Mapping[str, tuple[TopicId, Mapping[int, ReplicaAssignment]]], cause: str
) -> Turn[frozenset[str]]:
    """Write topic znodes; returns the topics that are not there any more."""
    outcome = yield WriteTopics(topics, cause)
    assert isinstance(outcome, TopicsWritten), f"WriteTopics was answered by {outcome}"
    return outcome.missing


def remove_topics(topics: tuple[str, ...], cause: str) -> Turn[None]:
    """Remove topics from ZooKeeper."""
    outcome = yield RemoveTopics(topics, cause)
    assert isinstance(outcome, TopicsRemoved), f"RemoveTopics was answered by {outcome}"


def read_unclean_topics(topics: frozenset[str], cause: str) -> Turn[frozenset[str]]:
    """Which of these topics allow unclean election."""
    outcome = yield ReadUncleanTopics(topics, cause)
    assert isinstance(outcome, UncleanTopicsRead), f"ReadUncleanTopics was answered by {outcome}"
    return outcome.allowed
