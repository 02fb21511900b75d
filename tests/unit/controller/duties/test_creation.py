"""What CreateTopics may ask for, as a table; and what comes of it."""

from typing import Any

import pytest

from ottla.controller.duties import creation
from ottla.controller.effects import Answer, Breathe, NewTopic, TopicsCreated, WriteNewTopics, WriteTopics
from ottla.controller.events import TopicFound, TopicsChanged, TopicWanted
from ottla.model.errors import ErrorCode as E
from ottla.model.errors import Refusal
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from support.bench.controller_world import ControllerWorld


def a_topic(name: str = "orders", partitions: int = 2, factor: int = 2, **more: Any) -> TopicWanted:
    given = {"by_hand": (), "settings": (), "topic_id": TopicId(b"i" * 16), "start": 0, "shift": 0}
    return TopicWanted(name, partitions, factor, **{**given, **more})


def by_hand(*rows: tuple[int, tuple[int, ...]]) -> TopicWanted:
    placed = tuple((index, tuple(map(BrokerId, replicas))) for index, replicas in rows)
    return a_topic(partitions=-1, factor=-1, by_hand=placed)


def with_settings(**settings: str | None) -> TopicWanted:
    return a_topic(settings=tuple((name.replace("_", "."), value) for name, value in settings.items()))


def in_office(*commands: str) -> ControllerWorld:
    world = ControllerWorld()
    for command in ("brokers 1 2", *commands, "elect 1"):
        world.run(command)
    world.effects.clear()
    return world


def create(
    world: ControllerWorld, *topics: TopicWanted, validate_only: bool = False
) -> dict[str, NewTopic | Refusal]:
    world.request_topics(*topics, validate_only=validate_only)
    [answer] = [effect for effect in world.effects if isinstance(effect, Answer)]
    assert isinstance(answer.result, TopicsCreated)
    return dict(answer.result.results)


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("topic", "error", "words"),
    [
        (a_topic("there"), E.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (a_topic("dying"), E.TOPIC_ALREADY_EXISTS, "Topic 'dying' is marked for deletion."),
        (a_topic("the re"), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (a_topic(".."), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (a_topic("a" * 250), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (a_topic("with_dot"), E.INVALID_TOPIC_EXCEPTION, "collides with existing topics: with.dot"),
        (a_topic("__cluster_metadata"), E.INVALID_REQUEST, "internal topic __cluster_metadata is prohibited"),
        (a_topic(partitions=0), E.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (a_topic(partitions=500_001), E.INVALID_PARTITIONS, "must not be larger than 500000."),
        (a_topic(factor=0), E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (a_topic(factor=3), E.INVALID_REPLICATION_FACTOR, "larger than available brokers: 2."),
        (by_hand((0, (1,)))._replace(partitions=1), E.INVALID_REQUEST, "Both cannot be used"),
        (by_hand((0, (1,)), (2, (1,))), E.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        (by_hand((0, (1, 1))), E.INVALID_REPLICA_ASSIGNMENT, "Duplicate replica"),
        (by_hand((0, (-1,))), E.INVALID_REPLICA_ASSIGNMENT, "Invalid broker id"),
        (by_hand((0, ())), E.INVALID_REPLICA_ASSIGNMENT, "Empty replica list"),
        (by_hand((0, (1,)), (1, (1, 2))), E.INVALID_REPLICA_ASSIGNMENT, "same number of replicas"),
        (
            with_settings(retention_ms=None),
            E.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (with_settings(no_such_setting="1"), E.INVALID_CONFIG, "no.such.setting"),
        (
            with_settings(min_compaction_lag_ms="60000", max_compaction_lag_ms="1"),
            E.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (60000) > max.compaction.lag.ms (1)",
        ),
    ],
)
def test_what_is_refused_and_why(topic: TopicWanted, error: E, words: str, validate_only: bool) -> None:
    world = in_office("topic there 0=1", "topic with.dot 0=1", "topic dying 0=1,7", "elect 2", "delete dying")

    refusal = create(world, topic, validate_only=validate_only)[topic.name]

    assert isinstance(refusal, Refusal)
    assert refusal.error == error
    assert words in (refusal.why or "")
    assert not [effect for effect in world.effects if isinstance(effect, WriteNewTopics)]


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (a_topic("there", factor=9, settings=(("x", None),)), "already exists"),
        (a_topic("the re", factor=9, settings=(("x", None),)), "Null value"),
        (a_topic("the re", factor=9, settings=(("x", "1"),)), "larger than available brokers"),
        (a_topic("the re", settings=(("x", "1"),)), "Topic name is invalid"),
        (a_topic("with_dot", settings=(("x", "1"),)), "collides"),
        (a_topic("unseen", settings=(("x", "1"),)), "Unknown topic config name"),
    ],
)
def test_of_several_faults_the_one_that_kafka_checks_first_is_told(topic: TopicWanted, words: str) -> None:
    world = in_office("topic there 0=1", "topic with.dot 0=1")
    world.topics["unseen"] = world.topics["there"]  # the watch has not fired

    refusal = create(world, topic)[topic.name]

    assert isinstance(refusal, Refusal)
    assert words in (refusal.why or "")


def test_a_topic_without_a_leader_is_found_to_exist_only_when_all_else_is_right() -> None:
    world = in_office("topic orders 0=7")

    assert create(world, a_topic())["orders"] == Refusal(
        E.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists."
    )
    world.effects.clear()
    refusal = create(world, a_topic(factor=9))["orders"]
    assert isinstance(refusal, Refusal)
    assert refusal.error == E.INVALID_REPLICATION_FACTOR


def test_of_two_names_that_collide_only_the_first_is_made() -> None:
    world = in_office()

    results = create(world, a_topic("a.b"), a_topic("a_b", topic_id=TopicId(b"j" * 16)))

    assert isinstance(results["a.b"], NewTopic)
    assert results["a_b"] == Refusal(
        E.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topics: a.b"
    )
    assert list(world.topics) == ["a.b"]


def test_a_topic_named_twice_is_refused() -> None:
    results = create(in_office(), a_topic(), a_topic())

    assert results == {"orders": Refusal(E.INVALID_REQUEST, "Found multiple entries for this topic.")}


def test_the_lots_say_where_the_first_replica_lies() -> None:
    placed = [create(in_office(), a_topic(start=start))["orders"] for start in (0, 1, 2)]

    firsts = [topic.partitions[0].replicas for topic in placed if isinstance(topic, NewTopic)]
    assert firsts == [(1, 2), (2, 1), (1, 2)]


def test_others_have_their_turn_while_a_large_topic_is_placed() -> None:
    world = in_office()

    results = create(world, a_topic(partitions=20 * creation.ROWS_A_BREATH), validate_only=True)

    topic = results["orders"]
    assert isinstance(topic, NewTopic)
    assert len(topic.partitions) == 20 * creation.ROWS_A_BREATH
    assert len({id(each) for each in topic.partitions.values()}) == 2, "equal assignments are one object"
    assert len([effect for effect in world.effects if isinstance(effect, Breathe)]) >= 20


def test_the_watch_on_a_topic_that_the_controller_created_brings_nothing_new() -> None:
    world = in_office()
    create(world, a_topic())
    written = len(world.written)

    world.run("watch-fires")

    assert len(world.written) == written
    assert not [effect for effect in world.effects if isinstance(effect, WriteTopics)]


def test_partitions_that_somebody_adds_before_the_topic_is_watched_get_leaders_when_it_is() -> None:
    world = in_office()
    create(world, a_topic())
    made = world.topics["orders"]
    grown = TopicFound(made.topic_id, {**made.partitions, 2: made.partitions[0]})

    world.feed(TopicsChanged(frozenset({"orders"}), {"orders": grown}))

    assert world.states[TopicPartition("orders", 2)].leader == 1
