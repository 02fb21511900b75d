"""A transactional producer, and readers, through kafka-python."""

from __future__ import annotations

import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

from kafka import KafkaConsumer, KafkaProducer  # noqa: E402
from kafka.errors import KafkaError  # noqa: E402
from kafka.structs import OffsetAndMetadata, TopicPartition  # noqa: E402

from support.transactors.obeying import LAST, obey_all, settings_of  # noqa: E402

LIMIT_S = 60


class Transactor:
    """Obeys one command after another."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._servers = settings["bootstrap.servers"].split(",")

    def obey(self, words: list[str]) -> object:
        match words:
            case ["init"]:
                self._producer = KafkaProducer(
                    bootstrap_servers=self._servers,
                    transactional_id=self._settings["transactional.id"],
                    transaction_timeout_ms=int(self._settings["transaction.timeout.ms"]),
                )
                self._producer.init_transactions()
            case ["begin"]:
                self._producer.begin_transaction()
            case ["send", topic, partition, value]:
                self._producer.send(topic, value.encode(), partition=int(partition)).get(LIMIT_S)
            case ["offsets", group, topic, partition, offset]:
                offsets = {TopicPartition(topic, int(partition)): OffsetAndMetadata(int(offset), "", -1)}
                self._producer.send_offsets_to_transaction(offsets, group)
            case ["commit"]:
                self._producer.commit_transaction()
            case ["abort"]:
                self._producer.abort_transaction()
            case ["end", topic, isolation]:
                partition = TopicPartition(topic, 0)
                consumer = self._a_consumer(isolation)
                found = consumer.end_offsets([partition])[partition]
                consumer.close()
                return found
            case ["read", topic, isolation]:
                return ",".join(self._read(topic, isolation))
            case _:
                raise ValueError(words)
        return None

    def _a_consumer(self, isolation: str) -> Any:
        return KafkaConsumer(bootstrap_servers=self._servers, isolation_level=f"read_{isolation}")

    def _read(self, topic: str, isolation: str) -> list[str]:
        consumer = self._a_consumer(isolation)
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: list[str] = []
        while LAST not in found:
            for records in consumer.poll(1_000).values():
                found += [record.value.decode() for record in records]
        consumer.close()
        return found


if __name__ == "__main__":
    obey_all(Transactor(settings_of(sys.argv[1:])).obey, (KafkaError,))
