"""The checkers themselves: each must see the broken promise that it is there for."""

from __future__ import annotations

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.plan import TopicKind
from ottla.sim.truth.history import FinalLog, Found, History, Sent, Violation

TP = TopicPartition("topic-0", 0)


def sent(history: History, order: int, *, producer: str = "p", key: bytes | None = None) -> Sent:
    value = Sent(f"{producer}/{order}".encode(), producer, order, TP, key)
    history.will_send(value)
    return value


def acked(history: History, count: int, *, keys: int = 0) -> list[Sent]:
    made = []
    for order in range(count):
        value = sent(history, order, key=b"k%d" % (order % keys) if keys else None)
        history.acked(value, order)
        made.append(value)
    return made


def final(
    history: History, values: list[Sent | None], kind: TopicKind = TopicKind.PLAIN, **more: int
) -> None:
    records = [Found(at, each.key, each.value) for at, each in enumerate(values) if each is not None]
    history.check_final({TP: FinalLog(kind, more.get("start", 0), records, more.get("loss_from"))})


def test_what_was_acknowledged_is_there() -> None:
    history = History()
    final(history, [*acked(history, 3)])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_lost_record_is_seen(missing: int) -> None:
    history = History()
    values: list[Sent | None] = [*acked(history, 3)]
    values[missing] = None

    with pytest.raises(Violation, match="lost"):
        final(history, values)


def test_a_record_twice_is_seen() -> None:
    history = History()
    values = acked(history, 2)

    with pytest.raises(Violation, match="duplicate"):
        final(history, [*values, values[1]])


def test_another_order_is_seen() -> None:
    history = History()
    one, two = sent(history, 1), sent(history, 2)

    with pytest.raises(Violation, match="reordered"):
        final(history, [two, one])


def test_a_record_that_nobody_sent_is_seen() -> None:
    history = History()
    stranger = Sent(b"stranger", "x", 1, TP)

    with pytest.raises(Violation, match="phantom"):
        final(history, [stranger])
    with pytest.raises(Violation, match="phantom"):
        history.was_read(TP, 0, b"stranger", "consumer")


def test_a_record_that_was_refused_must_not_appear() -> None:
    history = History()
    value = sent(history, 1)
    history.refused(value)

    with pytest.raises(Violation, match="refused"):
        history.was_read(TP, 0, value.value, "consumer")
    with pytest.raises(Violation, match="refused"):
        final(history, [value])


def test_an_offset_shows_one_value_for_ever() -> None:
    history = History()
    one, two = sent(history, 1), sent(history, 2)
    history.was_read(TP, 5, one.value, "consumer")

    with pytest.raises(Violation, match="changed"):
        history.acked(two, 5)


def test_a_record_elsewhere_than_acknowledged_is_seen() -> None:
    history = History()
    value = sent(history, 1)
    history.acked(value, 7)

    with pytest.raises(Violation, match="moved"):
        final(history, [value])


def test_what_retention_removed_is_not_missed() -> None:
    history = History()
    values: list[Sent | None] = [*acked(history, 4)]
    final(history, [None, None, *values[2:]], TopicKind.RETAINED, start=2)

    with pytest.raises(Violation, match="lost"):
        final(history, [None, None, None, values[3]], TopicKind.RETAINED, start=2)


def test_compaction_may_take_what_has_a_newer_record_and_nothing_else() -> None:
    history = History()
    values: list[Sent | None] = [*acked(history, 6, keys=2)]
    final(history, [None, None, None, None, *values[4:]], TopicKind.COMPACTED)

    with pytest.raises(Violation, match="lost"):
        final(history, [*values[:5], None], TopicKind.COMPACTED)


def test_an_unclean_election_excuses_only_what_its_receipt_tells() -> None:
    history = History()
    values: list[Sent | None] = [*acked(history, 4)]
    history.unclean.add(TP)
    final(history, [*values[:2], None, None], TopicKind.UNCLEAN, loss_from=2)

    with pytest.raises(Violation, match="lost"):
        final(history, [values[0], None, None, None], TopicKind.UNCLEAN, loss_from=2)


def test_no_producer_id_goes_to_two_producers() -> None:
    history = History()
    history.producer_id_given(5, "one")
    history.producer_id_given(5, "one")

    with pytest.raises(Violation, match="producer id 5"):
        history.producer_id_given(5, "two")
