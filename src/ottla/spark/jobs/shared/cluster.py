"""What jobs ask the cluster before Spark is started, so that a typing mistake is reported at once."""

from dataclasses import dataclass

from ottla.client.blocking.client import Client
from ottla.client.errors import ClientError
from ottla.model.ids import TopicId, topic_id_text
from ottla.spark.errors import refuse
from ottla.spark.options.kafka_settings import BOOTSTRAP, kafka_settings
from ottla.spark.options.write import write_options
from ottla.spark.read.offsets import partition_numbers, settled_topics, unreachable
from ottla.spark.write.sinks import check_topic


@dataclass(frozen=True, slots=True)
class Target:
    """A topic to write to: its id in its cluster, and how many partitions it has."""

    id: str
    partition_count: int


def check_sources(option: str, topics: str, bootstrap_servers: str) -> None:
    """Refuse topics to read, separated by commas, that are not there."""
    wanted = [name.strip() for name in topics.split(",") if name.strip()]
    if not wanted:
        raise refuse(option, topics, "no topic is named", "write topic,topic")
    kafka = kafka_settings({BOOTSTRAP: bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        found = partition_numbers(client, kafka, wanted)
    for name in wanted:
        if name not in found:
            raise refuse(option, name, "the cluster has no such topic", "create it, or correct the name")


def check_target(topic: str, bootstrap_servers: str) -> None:
    """Refuse a topic to write to that is not there, and that the cluster does not make when asked."""
    check_topic(write_options({BOOTSTRAP: bootstrap_servers, "topic": topic}))


def find_target(topic: str, bootstrap_servers: str) -> Target | None:
    """A topic of that name, by the cluster's id and its own; ``None`` while there is none."""
    kafka = kafka_settings({BOOTSTRAP: bootstrap_servers}, is_sink=False)
    with Client(kafka.client) as client:
        try:
            response = client.run(settled_topics, [topic])
        except ClientError as error:
            raise unreachable(kafka, error) from error
    (found,) = response.topics
    if found.error_code:
        return None
    return Target(
        f"{response.cluster_id}/{topic_id_text(TopicId(found.topic_id))}",
        len(found.partitions),
    )
