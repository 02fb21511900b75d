"""A member of a consumer group through librdkafka."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

BATCH = 50


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def named(partitions: list[TopicPartition]) -> str:
    return ",".join(str(each.partition) for each in partitions) or "-"


class Leaving(Exception):
    """SIGTERM."""


def leave(number: int, frame: object) -> None:
    raise Leaving


def read_and_commit(consumer: Consumer, topic: str, following: dict[int, int]) -> None:
    """Poll by poll: what was read before a partition was taken is told before that, and not committed."""
    following.clear()
    for number in range(BATCH):
        message = consumer.poll(0 if number else 0.1)
        if message is None:
            break
        error = message.error()
        if error is None:
            say(f"record {message.partition()} {message.offset()} {message.value().decode()}")
            following[message.partition()] = message.offset() + 1
        elif error.fatal():
            raise KafkaException(error)
    if not following:
        return
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in following.items()]
    try:
        done = consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException as error:
        say(f"uncommitted {error.args[0].name()}")
        return
    for each in done or []:
        outcome = each.error
        say(
            f"committed {each.partition} {each.offset}"
            if outcome is None
            else f"uncommitted {outcome.name()}"
        )


def main(words: list[str]) -> None:
    settings: dict[str, Any] = dict(word.split("=", 1) for word in words)
    topic = settings.pop("topic")
    if settings.get("group.protocol") != "consumer":
        settings.pop("group.protocol", None)
    consumer = Consumer(
        {"auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0, **settings}
    )

    following: dict[int, int] = {}

    def given(_: object, partitions: list[TopicPartition]) -> None:
        say(f"assigned {named(partitions)}")

    def taken(_: object, partitions: list[TopicPartition]) -> None:
        say(f"revoked {named(partitions)}")
        for each in partitions:
            following.pop(each.partition, None)

    signal.signal(signal.SIGTERM, leave)
    try:
        consumer.subscribe([topic], on_assign=given, on_revoke=taken, on_lost=taken)
        while True:
            read_and_commit(consumer, topic, following)
    except Leaving:
        with suppress(KafkaException):
            consumer.close()
        say("left")
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        say(f"failed {reason.name()} {reason.str()}")


if __name__ == "__main__":
    main(sys.argv[1:])
