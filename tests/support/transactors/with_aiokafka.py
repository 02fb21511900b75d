"""A transactional producer, and readers, through aiokafka."""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # noqa: E402
from aiokafka.errors import IllegalStateError, KafkaError  # noqa: E402

from support.transactors.obeying import LAST, obey_all, settings_of  # noqa: E402


class Transactor:
    """Obeys one command after another."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()

    def obey(self, words: list[str]) -> object:
        return self._loop.run_until_complete(self._obey(words))

    async def _obey(self, words: list[str]) -> object:
        match words:
            case ["init"]:
                self._producer = AIOKafkaProducer(
                    bootstrap_servers=self._settings["bootstrap.servers"],
                    transactional_id=self._settings["transactional.id"],
                    transaction_timeout_ms=int(self._settings["transaction.timeout.ms"]),
                )
                await self._producer.start()
            case ["begin"]:
                await self._producer.begin_transaction()
            case ["send", topic, partition, value]:
                await self._producer.send_and_wait(topic, value.encode(), partition=int(partition))
            case ["offsets", group, topic, partition, offset]:
                offsets = {TopicPartition(topic, int(partition)): int(offset)}
                await self._producer.send_offsets_to_transaction(offsets, group)
            case ["commit"]:
                await self._producer.commit_transaction()
            case ["abort"]:
                await self._producer.abort_transaction()
            case ["end", topic, isolation]:
                async with self._a_consumer(isolation) as consumer:
                    partition = TopicPartition(topic, 0)
                    return (await consumer.end_offsets([partition]))[partition]
            case ["read", topic, isolation]:
                return ",".join(await self._read(topic, isolation))
            case _:
                raise ValueError(words)
        return None

    def _a_consumer(self, isolation: str) -> Any:
        servers = self._settings["bootstrap.servers"]
        return AIOKafkaConsumer(bootstrap_servers=servers, isolation_level=f"read_{isolation}")

    async def _read(self, topic: str, isolation: str) -> list[str]:
        found: list[str] = []
        async with self._a_consumer(isolation) as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            while LAST not in found:
                found.append((await consumer.getone()).value.decode())
        return found


if __name__ == "__main__":
    obey_all(Transactor(settings_of(sys.argv[1:])).obey, (KafkaError, IllegalStateError))
