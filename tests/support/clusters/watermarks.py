"""Where a partition begins and ends, asked through librdkafka until its leader can say."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from support.running.waiting import wait_until

# What a client is meant to ask again after, and librdkafka hands on: a leader that was just elected knows its
# end once its followers have fetched; a leader is unknown, or another by now; the broker that was asked left
# the metadata meanwhile.
PASSING = {
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._DESTROY_BROKER,
}


def watermarks(consumer: Consumer, topic: str, index: int = 0) -> tuple[int, int]:
    """The first offset of a partition and the high watermark."""
    refusals: list[str] = []

    def ask() -> tuple[int, int] | None:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=20)
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise
            refusals.append(str(error))
            return None

    return wait_until(ask, lambda: f"{topic}-{index} says where it ends: {refusals[-1]}")
