"""What guards leave in ZooKeeper about a death becomes the cause of what the controller decides."""

import json

import pytest

from ottla.znodes import paths
from ottla.zookeeper.ops import ANY_VERSION, Create, Delete, Exists, Found
from support.bench.controller_bench import ControllerBench, in_office

WORDS = "process 4711 ended by signal 9; its guard closed the session"


def tell_death(bench: ControllerBench, broker: int, epoch: int | None = None) -> None:
    """As the guard does; of the present life, or of another."""
    registered = bench.zk(Exists(paths.broker(broker)))
    present = registered.stat.czxid if isinstance(registered, Found) else 0
    content = {"version": 1, "epoch": present if epoch is None else epoch, "words": WORDS}
    write(bench, broker, json.dumps(content).encode())


def write(bench: ControllerBench, broker: int, content: bytes) -> None:
    for path in (*paths.parents(paths.DEATHS), paths.DEATHS):
        bench.zk(Create(path))
    bench.zk(Create(paths.death(broker), content))


def causes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of turns that decided something."""
    turns = [record.args for record in caplog.records if record.msg.startswith("turn cause")]
    return [str(turn[0]) for turn in turns if turn[1]]  # type: ignore[index, misc]


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


def test_a_broker_that_is_gone_is_gone_for_the_reason_that_its_guard_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = in_office(2, topics={"orders": ((2, 1),)})
    tell_death(bench, 2)

    bench.unregister(2)

    assert causes(caplog)[-1] == f"broker 2 is gone: {WORDS}"


def test_what_a_guard_told_of_an_earlier_life_is_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    bench = in_office(2, topics={"orders": ((2, 1),)})
    tell_death(bench, 2, epoch=1)

    bench.unregister(2)

    assert causes(caplog)[-1] == "broker 2 is gone"


def test_rubbish_is_no_reason(caplog: pytest.LogCaptureFixture) -> None:
    bench = in_office(2, topics={"orders": ((2, 1),)})
    write(bench, 2, b"\xff[]")

    bench.unregister(2)

    assert causes(caplog)[-1] == "broker 2 is gone"


def test_a_new_controller_says_of_what_its_predecessor_died(caplog: pytest.LogCaptureFixture) -> None:
    bench = in_office(2, 3, topics={"orders": ((2, 1),)})
    bench.depose(by=2)
    tell_death(bench, 2)
    tell_death(bench, 3)  # It lives: what its guard told is about the past.

    bench.unregister(2)
    bench.zk(Delete(paths.CONTROLLER, ANY_VERSION))

    assert causes(caplog)[-1] == f"broker 1 took office and found broker 2 not alive: {WORDS}"


def test_a_broker_that_is_back_takes_the_words_about_its_death_away() -> None:
    bench = ControllerBench()
    write(bench, 1, b"{}")

    bench.start()

    assert not isinstance(bench.zk(Exists(paths.death(1))), Found)
