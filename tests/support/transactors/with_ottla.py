"""A transactional producer, and readers, through Ottla's own client."""

from __future__ import annotations

import sys

from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.client.fetching.offsets import list_offsets
from ottla.client.group.metadata import GroupMetadata
from ottla.model.ids import TopicPartition
from ottla.model.timestamps import EARLIEST, LATEST
from support.transactors.obeying import LAST, obey_all, settings_of


class Transactor:
    """Obeys one command after another."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._client = Client(settings["bootstrap.servers"])

    def obey(self, words: list[str]) -> object:
        match words:
            case ["init"]:
                self._producer = self._client.producer(
                    transactional_id=self._settings["transactional.id"],
                    transaction_timeout_ms=int(self._settings["transaction.timeout.ms"]),
                )
                self._producer.init_transactions()
            case ["begin"]:
                self._producer.begin_transaction()
            case ["send", topic, partition, value]:
                self._producer.wait(self._producer.send(topic, value.encode(), partition=int(partition)))
            case ["offsets", group, topic, partition, offset]:
                offsets = {TopicPartition(topic, int(partition)): int(offset)}
                self._producer.send_offsets_to_transaction(offsets, GroupMetadata(group))
            case ["commit"]:
                self._producer.commit_transaction()
            case ["abort"]:
                self._producer.abort_transaction()
            case ["end", topic, isolation]:
                return self._end(topic, isolation)
            case ["read", topic, isolation]:
                return ",".join(self._read(topic, isolation))
            case _:
                raise ValueError(words)
        return None

    def _end(self, topic: str, isolation: str) -> int:
        level = 1 if isolation == "committed" else 0
        partition = TopicPartition(topic, 0)
        found = self._client.run(list_offsets, {partition: LATEST}, isolation_level=level)
        return int(found[partition].offset)

    def _read(self, topic: str, isolation: str) -> list[str]:
        consumer = self._client.consumer(isolation_level=f"read_{isolation}")
        consumer.assign({TopicPartition(topic, 0): EARLIEST})
        found: list[str] = []
        while LAST not in found:
            for records in consumer.poll(1_000).values():
                found += [(record.value or b"").decode() for record in records]
        return found


if __name__ == "__main__":
    obey_all(Transactor(settings_of(sys.argv[1:])).obey, (ClientError,))
