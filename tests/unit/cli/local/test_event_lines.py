"""What ``ottla up`` repeats out of its brokers' logs."""

from pathlib import Path

from ottla.cli.local.event_lines import EventLines

PREFIX = "2026-01-01 00:00:00,000 INFO ottla.broker "


def isr(partition: str, isr: str, was: str) -> str:
    return f"{PREFIX}isr partition={partition} epoch=3 isr={isr} was={was} version=4\n"


def test_an_election_and_a_resignation_are_told_with_epoch_and_reason(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text(
        f"{PREFIX}controller elected broker=2 epoch=7\n"
        f"{PREFIX}controller resigns broker=2 epoch=7 reason=the ZooKeeper session expired\n"
    )

    assert list(EventLines([(2, log)]).news()) == [
        "broker 2 was elected controller, epoch 7",
        "broker 2 resigns as controller, epoch 7: the ZooKeeper session expired",
    ]


def test_many_isr_changes_become_one_line_for_each_broker_that_left_or_came(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("".join(isr(f"t-{n}", "1,2", "1,2,0") for n in range(5)) + isr("u-0", "1,2,0", "1,2"))

    assert list(EventLines([(1, log)]).news()) == [
        "ISR shrank: without broker 0 in t-0, t-1, t-2 and 2 more (leader 1)",
        "ISR grew: with broker 0 in u-0 (leader 1)",
    ]


def test_each_line_is_told_once_and_half_a_line_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    events = EventLines([(0, log)])
    assert list(events.news()) == []

    log.write_text(f"{PREFIX}started broker=0 cluster=x ms=1\n{PREFIX}controller elected bro")
    assert list(events.news()) == ["broker 0 has joined"]

    with log.open("a") as more:
        more.write("ker=0 epoch=1\n")
    assert list(events.news()) == ["broker 0 was elected controller, epoch 1"]
    assert list(events.news()) == []


def test_a_broker_that_starts_again_begins_a_new_log(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text(f"{PREFIX}started broker=0 cluster=x ms=1\n" * 2)
    events = EventLines([(0, log)])
    list(events.news())

    log.rename(tmp_path / "broker.log.1")
    log.write_text(f"{PREFIX}started broker=0 cluster=x ms=1\n")

    assert list(events.news()) == ["broker 0 has joined"]


def test_turns_that_decided_nothing_are_not_told(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text(
        f"{PREFIX}turn cause='brokers changed' decided=0 ms=3 epoch=1\n"
        f'{PREFIX}turn cause="broker 1\'s end" decided=12 ms=3 epoch=1\n'
    )

    assert list(EventLines([(0, log)]).news()) == [
        "controller decided on 12 partitions in 3 ms: broker 1's end"
    ]
