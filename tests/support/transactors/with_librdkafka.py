"""A transactional producer, and readers, through librdkafka."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from support.transactors.obeying import LAST, obey_all, settings_of

LIMIT_S = 60


class Transactor:
    """Obeys one command after another."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._servers = {"bootstrap.servers": settings["bootstrap.servers"], "log_level": 0}

    def obey(self, words: list[str]) -> object:
        match words:
            case ["init"]:
                self._producer = Producer({**self._settings, "log_level": 0})
                self._producer.init_transactions(LIMIT_S)
            case ["begin"]:
                self._producer.begin_transaction()
            case ["send", topic, partition, value]:
                self._send(topic, int(partition), value)
            case ["offsets", group, topic, partition, offset]:
                with_group = Consumer({**self._servers, "group.id": group})
                offsets = [TopicPartition(topic, int(partition), int(offset))]
                metadata = with_group.consumer_group_metadata()
                self._producer.send_offsets_to_transaction(offsets, metadata, LIMIT_S)
                with_group.close()
            case ["commit"]:
                self._producer.commit_transaction(LIMIT_S)
            case ["abort"]:
                self._producer.abort_transaction(LIMIT_S)
            case ["end", topic, isolation]:
                consumer = self._a_consumer(isolation)
                return consumer.get_watermark_offsets(TopicPartition(topic, 0), LIMIT_S)[1]
            case ["read", topic, isolation]:
                return ",".join(self._read(topic, isolation))
            case _:
                raise ValueError(words)
        return None

    def _send(self, topic: str, partition: int, value: str) -> None:
        errors = []
        self._producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
        self._producer.flush(LIMIT_S)
        if errors != [None]:
            raise KafkaException(errors[0] if errors else "not delivered")

    def _a_consumer(self, isolation: str) -> Consumer:
        return Consumer({**self._servers, "group.id": "reader", "isolation.level": f"read_{isolation}"})

    def _read(self, topic: str, isolation: str) -> list[str]:
        consumer = self._a_consumer(isolation)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        while LAST not in found:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append(message.value().decode())
        consumer.close()
        return found


if __name__ == "__main__":
    obey_all(Transactor(settings_of(sys.argv[1:])).obey, (KafkaException,))
