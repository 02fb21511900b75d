"""The options of a write, checked on the driver, every refusal by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.spark.errors import refuse
from ottla.spark.kafka_settings import PREFIX, KafkaSettings, kafka_settings
from ottla.spark.options import a_flag

_KNOWN = ("topic", "includeHeaders", "preserveTimestamp")
_GIVEN_BY_SPARK = ("checkpointlocation", "queryname", "path")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Everything a write needs to know; goes to every task."""

    kafka: KafkaSettings
    topic: str | None
    preserve_timestamp: bool


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The checked options; ``OptionRefused`` for the first that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    known = {name.lower() for name in _KNOWN}
    for name, value in given.items():
        if not name.startswith(PREFIX) and name not in known and name not in _GIVEN_BY_SPARK:
            raise refuse(
                name, value, "a sink has no such option", f"there are {', '.join(_KNOWN)} and kafka.*"
            )
    topic = given["topic"].strip() if "topic" in given else None
    if topic == "":
        value, remedy = given["topic"], "name a topic, or leave it out and give a column 'topic'"
        raise refuse("topic", value, "it is empty", remedy)
    a_flag("includeHeaders", given.get("includeheaders", "false"))  # checked alone, as Spark does
    return WriteOptions(
        kafka_settings(given, is_sink=True),
        topic,
        a_flag("preserveTimestamp", given.get("preservetimestamp", "false")),
    )
