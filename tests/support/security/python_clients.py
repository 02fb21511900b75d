"""kafka-python and aiokafka behind a login, as a program: address, mechanism, user, password, topic.

It writes a record with each and prints what kafka-python's consumer group reads, a line a record.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any


def main(address: str, mechanism: str, user: str, password: str, topic: str) -> None:
    """Write and read."""
    from kafka import KafkaConsumer, KafkaProducer

    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    producer = KafkaProducer(**settings)
    producer.send(topic, b"kafka-python").get(timeout=60)
    producer.close()
    asyncio.run(written_by_aiokafka(settings, topic))
    consumer = KafkaConsumer(topic, **settings, auto_offset_reset="earliest", group_id=topic)
    for count, record in enumerate(consumer, 1):
        sys.stdout.write(record.value.decode() + "\n")
        if count == 2:
            break
    consumer.close()


async def written_by_aiokafka(settings: dict[str, Any], topic: str) -> None:
    """One record."""
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(**settings) as producer:
        await producer.send_and_wait(topic, b"aiokafka")


if __name__ == "__main__":
    main(*sys.argv[1:])
