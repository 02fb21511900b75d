"""Make a topic; delete one."""

from shlex import quote

from ottla.client.admin.topics import a_topic, create_topics, delete_topics
from ottla.client.fetching.offsets import list_offsets
from ottla.console.change.act import (
    Act,
    At,
    CannotAct,
    Change,
    Field,
    Filled,
    Outcome,
    Plan,
    number_in,
    outcome,
)
from ottla.insight.wording import counted, size_text
from ottla.model.timestamps import EARLIEST, LATEST

MOST = 100_000


async def _plan_create(at: At, filled: Filled) -> Plan:
    name = filled["topic"].strip()
    if name in at.picture.topics:
        raise CannotAct(f"There is a topic {name} already.")
    partitions = number_in(filled, "partitions", "Partitions", 1, MOST) if filled.get("partitions") else -1
    factor = number_in(filled, "factor", "The replication factor", 1, 1000) if filled.get("factor") else -1
    wanted = a_topic(name, partitions=partitions, replication_factor=factor)
    (checked,) = await at.client.run(create_topics, [wanted], validate_only=True)
    if checked.error_code:
        raise CannotAct(
            f"The cluster would refuse: {outcome(name, checked.error_code, checked.error_message).said}."
        )

    async def work() -> list[Outcome]:
        (done,) = await at.client.run(create_topics, [wanted])
        return [outcome(name, done.error_code, done.error_message, "made")]

    partitions = max(partitions, checked.num_partitions)
    factor = max(factor, checked.replication_factor)
    shape = f"{counted(partitions, 'partition')}, {counted(factor, 'replica')} of each"
    return Plan(f"A topic {name} would be made.", work, [Change(name, "not there", shape)])


async def _plan_delete(at: At, filled: Filled) -> Plan:
    topic = filled["topic"]
    seen = at.picture.topics.get(topic)
    if seen is None:
        raise CannotAct(f"There is no topic {topic}.")
    rows = {name: row for name, row in at.picture.partitions.items() if name.topic == topic}
    led = [name for name, row in rows.items() if row.leader in at.picture.live]
    starts = await at.client.run(list_offsets, dict.fromkeys(led, EARLIEST)) if led else {}
    ends = await at.client.run(list_offsets, dict.fromkeys(led, LATEST)) if led else {}
    records = sum(max(0, ends[name].offset - starts[name].offset) for name in led)
    held = sum(size for (name, _), size in at.sizes.items() if name.topic == topic)

    async def work() -> list[Outcome]:
        (done,) = await at.client.run(delete_topics, [topic])
        return [outcome(topic, done.error_code, done.error_message, "deleted")]

    return Plan(
        f"Topic {topic} would be gone for ever, with about {counted(records, 'record')}, {size_text(held)}.",
        work,
        [Change(topic, counted(len(rows), "partition"), "gone")],
        state=seen.topic_id.hex(),
    )


CREATE = Act(
    "topics",
    "/create-topic",
    "Make a topic",
    "Make it",
    (
        Field("topic", "Name"),
        Field("partitions", "Partitions", hint="empty: the brokers' default", is_needed=False),
        Field("factor", "Replication factor", hint="empty: the brokers' default", is_needed=False),
    ),
    _plan_create,
    lambda filled: (
        f"ottla topics --create --topic {quote(filled.get('topic') or 'NAME')}"
        + (f" --partitions {quote(filled['partitions'])}" if filled.get("partitions") else "")
        + (f" --replication-factor {quote(filled['factor'])}" if filled.get("factor") else "")
    ),
)
DELETE = Act(
    "topics",
    "/topics/{topic}/delete",
    "Delete a topic",
    "Delete it for ever",
    (),
    _plan_delete,
    lambda filled: f"ottla topics --delete --topic {quote(filled.get('topic', 'NAME'))}",
    does_harm=True,
)
