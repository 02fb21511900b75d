"""Whether the markers in the logs are what the coordinators decided, transaction by transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from ottla.model.ids import TopicPartition
from ottla.sim.truth.contents import Mark
from ottla.sim.truth.history import Found, Violation
from ottla.wire.stored import TransactionLogValue, decode_stored, decode_transaction_key

ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = 1, 2, 3, 4, 5
COMPLETED_BY = {COMPLETE_COMMIT: PREPARE_COMMIT, COMPLETE_ABORT: PREPARE_ABORT}


@dataclass(frozen=True, slots=True)
class Decision:
    """How a transaction ended, where it wrote."""

    mark: Mark
    partitions: frozenset[TopicPartition]


def decisions_in(records: Iterable[Found]) -> list[Decision]:
    """The transactions that were completed, from one partition of ``__transaction_state``.

    A record may stand there whose append failed for its coordinator, which then wrote another: what was
    prepared last before it was completed is what counts, and a completion may stand there twice.
    """
    prepared: dict[str, tuple[int, Decision]] = {}
    last: dict[str, tuple[int, int, int]] = {}
    found = []
    for record in records:
        key = decode_transaction_key(record.key or b"")
        if key is None or not record.value:
            continue
        value = decode_stored(TransactionLogValue, record.value)
        status, name = value.transaction_status, key.transactional_id
        before = last.get(name)
        last[name] = (status, value.producer_id, value.producer_epoch)
        if status in (PREPARE_COMMIT, PREPARE_ABORT):
            mark = Mark(value.producer_id, value.producer_epoch, status == PREPARE_COMMIT)
            prepared[name] = (status, Decision(mark, _partitions(value)))
        elif status in COMPLETED_BY and before != last[name]:
            decided = prepared.get(name)
            if decided is None or decided[0] != COMPLETED_BY[status]:
                raise Violation(f"{name} was completed at {record.offset} and had not been prepared so")
            found.append(decided[1])
            del prepared[name]
    if prepared:
        raise Violation(f"stuck: {', '.join(prepared)} prepared and never completed")
    return found


def _partitions(value: TransactionLogValue) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(each.topic, number)
        for each in value.transaction_partitions or []
        for number in each.partition_ids
    )


def check_marks(decisions: list[Decision], marks: Mapping[TopicPartition, list[Mark]]) -> None:
    """Each partition has the markers of its transactions, in order; the same one may stand there twice."""
    for partition, there in marks.items():
        wanted: dict[int, list[Mark]] = {}
        for decision in decisions:
            if partition in decision.partitions:
                wanted.setdefault(decision.mark.producer_id, []).append(decision.mark)
        found: dict[int, list[Mark]] = {}
        for mark in there:
            found.setdefault(mark.producer_id, []).append(mark)
        for producer_id in wanted.keys() | found.keys():
            decided, written = _once(wanted.get(producer_id, [])), _once(found.get(producer_id, []))
            if decided != written:
                raise Violation(
                    f"markers of producer {producer_id} in {partition} differ from what was decided:"
                    f" {_difference(decided, written)}"
                )


def _difference(decided: list[Mark], written: list[Mark]) -> str:
    pairs = enumerate(zip(decided, written, strict=False))
    number = next((n for n, pair in pairs if pair[0] != pair[1]), None)
    if number is None:
        return f"{len(written)} are written, {len(decided)} were decided"
    return f"{written[number]} and not {decided[number]}"


def _once(marks: list[Mark]) -> list[Mark]:
    return [mark for mark, _ in groupby(marks)]
