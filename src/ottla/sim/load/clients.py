"""What all clients of the simulated world share: connections, and an idea of who leads what."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.model.ids import TopicPartition
from ottla.sim.load.rpc import Rpc
from ottla.sim.load.scripts import Script, Scripts, ask
from ottla.sim.machine.network import Network
from ottla.sim.world import MILLISECOND, World
from ottla.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

METADATA_VERSION = 12
BACKOFF_US = 100 * MILLISECOND


@dataclass(frozen=True, slots=True)
class Leader:
    """Where a partition is led, according to some broker."""

    broker: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a client's process finds: its world, the network, and the brokers' addresses."""

    world: World
    network: Network
    addresses: dict[int, tuple[str, int]]


class Client:
    """A process that knows the brokers' addresses."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self.world = around.world
        self.network = around.network
        self.host = name
        self.addresses = around.addresses
        self.leaders: dict[TopicPartition, Leader] = {}
        self.topic_ids: dict[str, bytes] = {}
        self._epochs: dict[TopicPartition, int] = {}
        """The latest leader epochs heard of: a broker that says less is behind."""
        self.controller = -1
        self.is_stopped = False
        self._rpcs: dict[int, Rpc] = {}
        self.scripts = Scripts(self.world, self.rpc)

    def rpc(self, broker: int) -> Rpc:
        if broker not in self._rpcs:
            self._rpcs[broker] = Rpc(self.world, self.network, self.host, self.addresses[broker])
        return self._rpcs[broker]

    def any_broker(self) -> int:
        return self.world.chance.choice(sorted(self.addresses))

    def refresh(self, topics: list[str], then: Callable[[], None]) -> None:
        """Ask some broker who leads; ignore answers older than what is known."""

        def heard(response: MetadataResponse | None) -> None:
            if response is not None:
                self._learn(response)
            then()

        self.rpc(self.any_broker()).ask(_metadata(topics), METADATA_VERSION, heard)

    def refreshing(self, topics: list[str]) -> Script:
        """The same as a step of a script."""
        response = yield ask(self.any_broker(), _metadata(topics), METADATA_VERSION)
        if response is not None:
            self._learn(response)

    def finding_controller(self) -> Script:
        """Look until some broker names one."""
        self.controller = -1
        while self.controller < 0:
            yield from self.refreshing([])
            if self.controller < 0:
                yield self.scripts.wait(self.backoff_us())

    def _learn(self, response: MetadataResponse) -> None:
        self.controller = response.controller_id
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                continue  # a broker that has just started knows no topic yet
            if self.topic_ids.get(name) != topic.topic_id:
                self.topic_ids[name] = topic.topic_id
                self.forget(name)
            for row in topic.partitions:
                partition = TopicPartition(name, row.partition_index)
                if row.leader_id >= 0 and row.leader_epoch >= self._epochs.get(partition, -1):
                    self._epochs[partition] = row.leader_epoch
                    self.leaders[partition] = Leader(row.leader_id, row.leader_epoch)

    def forget(self, topic: str) -> None:
        """Forget what is known of a topic."""
        for known in (self.leaders, self._epochs):
            for partition in [each for each in known if each.topic == topic]:
                del known[partition]

    def backoff_us(self, delay_us: int = BACKOFF_US) -> int:
        return delay_us + self.world.between(0, delay_us)

    def later(self, run: Callable[[], None], delay_us: int = BACKOFF_US) -> None:
        self.world.after(self.backoff_us(delay_us), run)


def _metadata(topics: list[str]) -> MetadataRequest:
    asked = [MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)
