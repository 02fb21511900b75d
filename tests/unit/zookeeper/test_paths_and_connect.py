"""Names: Kafka's paths, and the text that names an ensemble."""

import pytest

from ottla.model.ids import TopicPartition
from ottla.znodes import paths
from ottla.zookeeper.connect_string import Ensemble, Host, parse_connect_string


@pytest.mark.parametrize(
    ("text", "ensemble"),
    [
        ("h:2181", Ensemble((Host("h", 2181),))),
        ("h", Ensemble((Host("h", 2181),))),
        ("a:1, b:2 ,c:3/kafka/", Ensemble((Host("a", 1), Host("b", 2), Host("c", 3)), "/kafka")),
        ("[::1]:2182,[fe80::1]/a/b", Ensemble((Host("::1", 2182), Host("fe80::1", 2181)), "/a/b")),
        ("h:1/", Ensemble((Host("h", 1),))),
    ],
)
def test_a_connect_string_names_hosts_and_chroot(text: str, ensemble: Ensemble) -> None:
    assert parse_connect_string(text) == ensemble


@pytest.mark.parametrize(
    "text", ["", "/x", "h:", "h:x", "h:0", "h:65536", "h:-1", ",", "[::1", "a b:1", "h:1//x", "h:1/a/../b"]
)
def test_what_names_no_ensemble_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a ZooKeeper ensemble: "):
        parse_connect_string(text)


def test_an_ensemble_is_shown_as_it_is_written() -> None:
    text = "a:1,[::1]:2/kafka"

    assert str(parse_connect_string(text)) == text


def test_paths_are_kafkas() -> None:
    orders = TopicPartition("orders", 3)

    assert paths.partition_state(orders) == "/brokers/topics/orders/partitions/3/state"
    assert paths.topic_partition(orders) == "/brokers/topics/orders/partitions/3"
    assert paths.broker(7) == "/brokers/ids/7"
    assert paths.parents("/a/b/c") == ["/a", "/a/b"]
    assert paths.parents("/a") == []
    assert paths.sequence_number("config_change_0000000012") == 12
