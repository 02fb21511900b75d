"""Send one record, and say where it went and how long that took."""

import time
from shlex import quote

from ottla.console.change.act import Act, At, CannotAct, Change, Field, Filled, Outcome, Plan, number_in
from ottla.insight.wording import counted, size_text
from ottla.records.record import RecordHeaders

TEXT, NOTHING = "the text below", "nothing (a tombstone)"
SHOWN_MAX = 500


async def _plan(at: At, filled: Filled) -> Plan:
    topic = filled["topic"]
    count = sum(name.topic == topic for name in at.picture.partitions)
    if not count:
        raise CannotAct(f"There is no topic {topic}.")
    chosen = None
    if filled.get("partition"):
        chosen = number_in(filled, "partition", f"A partition of {topic}", 0, count - 1)
    key = filled["key"].encode() if filled.get("key") else None
    value = None if filled.get("as") == NOTHING else filled.get("value", "").encode()
    if value is None and key is None:
        raise CannotAct("A tombstone needs a key: it deletes the records that have the same.")
    headers = _headers(filled.get("headers", ""))
    where = "by its key" if key is not None else "of the producer's choice"

    async def work() -> list[Outcome]:
        producer = at.client.producer()
        try:
            begun = time.monotonic()
            sent = await producer.send_and_wait(topic, value, key=key, headers=headers, partition=chosen)
            took_ms = (time.monotonic() - begun) * 1000
        finally:
            await producer.close()
        return [Outcome(f"{sent.partition}", True, f"offset {sent.offset}, acknowledged in {took_ms:.1f} ms")]

    rows = [
        Change("partition", "", str(chosen) if chosen is not None else where),
        Change("key", "", _shown(key)),
        Change("value", "", _shown(value)),
        *(Change(f"header {name}", "", _shown(held)) for name, held in headers),
    ]
    return Plan(f"One record would be sent to {topic}, which has {counted(count, 'partition')}.", work, rows)


def _headers(text: str) -> RecordHeaders:
    headers = []
    for line in filter(None, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon:
            raise CannotAct(f"A header is written `name: value`, not {line!r}.")
        headers.append((name.strip(), value.strip().encode()))
    return tuple(headers)


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = value.decode()
    more = "…" if len(text) > SHOWN_MAX else ""
    return f"{text[:SHOWN_MAX]}{more}\n({size_text(len(value))})"


PRODUCE = Act(
    "produce",
    "/topics/{topic}/produce",
    "Send a record",
    "Send it",
    (
        Field("key", "Key", hint="empty: none", is_needed=False),
        Field("as", "Value", "choice", "", (TEXT, NOTHING), is_needed=False),
        Field("value", "Text", "area", is_needed=False),
        Field("headers", "Headers", "area", "one a line, name: value", is_needed=False),
        Field("partition", "Partition", hint="empty: by the key", is_needed=False),
    ),
    _plan,
    lambda filled: f"ottla console-producer --topic {quote(filled.get('topic', 'NAME'))}",
)
