"""The options of a write, checked on the driver, every refusal by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.spark.errors import refuse, refuse_name
from ottla.spark.exactly_once.decision import Batch
from ottla.spark.options.kafka_settings import PREFIX, KafkaSettings, kafka_settings
from ottla.spark.options.read import a_count, a_flag

_KNOWN = (
    "topic",
    "includeHeaders",
    "preserveTimestamp",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    "failOnDataLoss",
)
_ONCE_ONLY = ("txnAppId", "txnVersion", "failOnDataLoss")
_PREFIX = "transactionalIdPrefix"
_TIMEOUT = "kafka.transaction.timeout.ms"
TIMEOUT_MS = "900000"
"""The longest that brokers allow by default: a decided batch must wait for its driver."""
_GIVEN_BY_SPARK = ("checkpointlocation", "queryname", "path")


@dataclass(frozen=True, slots=True)
class ExactlyOnce:
    """``version``: which rows of an application a batch write holds, so that they are written once."""

    prefix: str
    version: Batch | None
    fails_on_loss: bool


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Everything a write needs to know; goes to every task."""

    kafka: KafkaSettings
    topic: str | None
    preserve_timestamp: bool
    exactly_once: ExactlyOnce | None = None


def write_options(options: Mapping[str, str], *, is_stream: bool = False) -> WriteOptions:
    """The checked options; ``OptionRefused`` for the first that cannot be."""
    given = {name.lower(): value for name, value in options.items()}
    exactly_once = _exactly_once(given, is_stream)
    if exactly_once is not None:
        given.setdefault(_TIMEOUT, TIMEOUT_MS)
    known = {name.lower() for name in _KNOWN}
    for name in given:
        if not name.startswith(PREFIX) and name not in known and name not in _GIVEN_BY_SPARK:
            raise refuse_name(name, "a sink has no such option", f"there are {', '.join(_KNOWN)} and kafka.*")
    topic = given["topic"].strip() if "topic" in given else None
    if topic == "":
        value, remedy = given["topic"], "name a topic, or leave it out and give a column 'topic'"
        raise refuse("topic", value, "it is empty", remedy)
    a_flag("includeHeaders", given.get("includeheaders", "false"))  # checked alone, as Spark does
    kafka = kafka_settings(given, is_sink=True)
    if exactly_once is not None and not kafka.producer.is_idempotent:
        value, remedy = exactly_once.prefix, "leave kafka.acks and kafka.enable.idempotence out"
        raise refuse(_PREFIX, value, "transactions need acks=all and idempotence", remedy)
    return WriteOptions(
        kafka,
        topic,
        a_flag("preserveTimestamp", given.get("preservetimestamp", "false")),
        exactly_once,
    )


def _exactly_once(given: Mapping[str, str], is_stream: bool) -> ExactlyOnce | None:
    prefix = given.get(_PREFIX.lower())
    if prefix is None:
        for name in (*_ONCE_ONLY, _TIMEOUT):
            if name.lower() in given:
                why, remedy = f"it has no effect without {_PREFIX}", f"remove it, or add {_PREFIX}"
                raise refuse(name, given[name.lower()], why, remedy)
        return None
    if not prefix.strip():
        raise refuse(_PREFIX, prefix, "it is empty", "name this sink: no other may have the same name")
    app, version = given.get("txnappid"), given.get("txnversion")
    if is_stream and (app is not None or version is not None):
        why, remedy = "a stream numbers its batches itself", "remove it; it is for foreachBatch"
        raise refuse("txnAppId", app or "", why, remedy)
    if (app is None) != (version is None):
        why, remedy = "txnAppId and txnVersion go together", "give both: the query's id and the batch's"
        raise refuse("txnAppId", app or "", why, remedy)
    batch = None if app is None or version is None else Batch(app, a_count("txnVersion", version))
    return ExactlyOnce(prefix, batch, a_flag("failOnDataLoss", given.get("failondataloss", "true")))
