"""``ottla transactions`` and Apache's own tool, asked about the same transactions: the same lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from integration.transactions.librdkafka import a_producer, read_to_end, write
from ottla.launch.cluster import Cluster
from support.processes.apache_tools import run_main
from support.processes.commands import run_here
from support.running.waiting import wait_until
from support.transactions.conversation import TransactionTalk
from support.zookeeper.chroots import Chroots

pytestmark = [pytest.mark.apache, pytest.mark.java, pytest.mark.slow]

TOOL = "org.apache.kafka.tools.TransactionsCommand"
OPEN, ENDED, TOPIC = "open", "ended", "orders"


@pytest.fixture(scope="module")
def cluster(chroots: Chroots) -> Iterator[Cluster]:
    """A transaction that is open, one that has ended, and one that hangs: nobody added its partition."""
    settings = {
        "transaction.state.log.num.partitions": "3",
        "transaction.partition.verification.enable": "false",
        "num.partitions": "1",
    }
    with Cluster(brokers=1, settings=settings, zookeeper=chroots.make().connect) as running:
        servers = running.bootstrap_servers
        ended, open_one = a_producer(servers, ENDED), a_producer(servers, OPEN)
        ended.begin_transaction()
        write(ended, TOPIC, ["a"])
        ended.commit_transaction()
        open_one.begin_transaction()
        write(open_one, TOPIC, ["b"])
        yield running


def theirs(cluster: Cluster, *words: str) -> list[str]:
    return run_main(TOOL, "--bootstrap-server", cluster.bootstrap_servers, *words).stdout.splitlines()


def ours(cluster: Cluster, *words: str) -> list[str]:
    ran = run_here("transactions", "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--duration-filter", "3600000"),
        ("describe", "--transactional-id", ENDED),
        ("describe-producers", "--topic", TOPIC, "--partition", "0"),
        ("describe-producers", "--broker-id", "0", "--topic", TOPIC, "--partition", "0"),
        ("find-hanging", "--topic", TOPIC),
        ("find-hanging", "--broker-id", "0"),
    ],
    ids=" ".join,
)
def test_both_tools_print_the_same(cluster: Cluster, words: tuple[str, ...]) -> None:
    def moving(line: str) -> str:
        """Without how long a transaction has lasted by now."""
        cells = line.split("\t")
        return "\t".join([*cells[:7], *cells[8:]]) if words[0] == "describe" else line

    found = sorted(moving(line) for line in theirs(cluster, *words))

    assert sorted(moving(line) for line in ours(cluster, *words)) == found
    assert found


def test_a_hanging_transaction_is_found_and_ended(cluster: Cluster) -> None:
    """With verification off a batch that nobody added begins one; records carry a time of long ago."""
    made = run_here("topics", "--create", "--topic", "lost", "--bootstrap-server", cluster.bootstrap_servers)
    assert made.exit_code == 0, made.stderr
    talk = TransactionTalk(cluster.brokers[0].address, "hanging")
    with closing(talk):
        wait_until(lambda: talk.init().error_code == 0, "the producer has its id")
        assert talk.produce("lost", 0, 0).responses[0].partition_responses[0].error_code == 0

    found = ours(cluster, "find-hanging", "--topic", "lost")
    assert found == theirs(cluster, "find-hanging", "--topic", "lost")
    [_, row] = found
    assert row.split()[:2] == ["lost", "0"]
    ours(cluster, "abort", "--topic", "lost", "--partition", "0", "--start-offset", row.split()[5])

    assert len(ours(cluster, "find-hanging", "--topic", "lost")) == 1
    assert read_to_end(cluster.bootstrap_servers, "lost") == []
    refused = run_here(
        *("transactions", "--bootstrap-server", cluster.bootstrap_servers, "abort"),
        *("--topic", "lost", "--partition", "0", "--start-offset", "0"),
    )
    assert refused.exit_code != 0
    assert "no open transaction of lost-0 begins at offset 0" in refused.stderr
