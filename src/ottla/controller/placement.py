"""Which brokers hold the replicas of a new partition.

Three rules, all pure; where Kafka draws lots (``start`` and ``shift``) the caller brings the numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.ids import BrokerId
from ottla.model.partition_state import ReplicaAssignment

Placement = dict[int, tuple[BrokerId, ...]]
PlacedRow = tuple[int, tuple[BrokerId, ...]]
"""A partition's number, and who holds it."""

PARTITIONS_MAX = 500_000
"""More of them do not fit into a topic's znode, however large ZooKeeper lets one be for Kafka (4 MiB)."""


class PlacementRule(Enum):
    """How followers are spread once every broker has led a partition."""

    SHIFTED = "shifted"
    """Kafka's: each full round over the brokers moves the followers one broker further."""
    PLAIN = "plain"
    """Replica j of partition i on broker (i + j) mod n; every round repeats the first."""


def assigned(
    rows: Iterable[PlacedRow], shared: dict[tuple[BrokerId, ...], ReplicaAssignment] | None = None
) -> dict[int, ReplicaAssignment]:
    """A placement as assignments; equal ones are one object, those in ``shared`` among them."""
    known = {} if shared is None else shared
    placed = {}
    for index, replicas in rows:
        placed[index] = known.get(replicas) or known.setdefault(replicas, ReplicaAssignment(replicas))
    return placed


def why_unsound(placed: Mapping[int, tuple[BrokerId, ...]], first_partition: int) -> str | None:
    """What is wrong with an assignment by hand; unknown brokers are not: they may yet come."""
    factors = {len(replicas) for replicas in placed.values()}
    if len(factors) > 1:
        return "All partitions should have the same number of replicas."
    for replicas in placed.values():
        if not replicas:
            return "Empty replica list in the replica assignment."
        if len(set(replicas)) < len(replicas):
            return f"Duplicate replica assignment found: {list(replicas)}"
        if min(replicas) < 0:
            return f"Invalid broker id in the replica assignment: {list(replicas)}"
    if sorted(placed) != list(range(first_partition, first_partition + len(placed))):
        return "Partitions should be a consecutive 0-based integer sequence"
    return None


def place_replicas(
    racks: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int = 0,
    shift: int = 0,
    rule: PlacementRule = PlacementRule.SHIFTED,
) -> Placement | Refusal:
    """All of ``placed_rows`` at once."""
    rows = placed_rows(racks, partitions, replication_factor, start=start, shift=shift, rule=rule)
    return rows if isinstance(rows, Refusal) else dict(rows)


def placed_rows(
    racks: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int = 0,
    shift: int = 0,
    first_partition: int = 0,
    rule: PlacementRule = PlacementRule.SHIFTED,
) -> Iterator[PlacedRow] | Refusal:
    """Place ``partitions`` new partitions on the brokers, in the order of the mapping, one after the other.

    Racks are honoured when every broker has one; a cluster where only some have one is refused, as in Kafka.
    """
    if (refused := _why_not(partitions, replication_factor, len(racks), first_partition)) is not None:
        return refused
    brokers = list(racks)
    if rule is PlacementRule.PLAIN:
        return place_plainly(brokers, partitions, replication_factor, first_partition=first_partition)
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    if not known:
        return place_shifted(
            brokers, partitions, replication_factor, start=start, shift=shift, first_partition=first_partition
        )
    if len(known) < len(racks):
        why = "Not all brokers have rack information for replica rack aware assignment."
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    return place_across_racks(
        known, partitions, replication_factor, start=start, shift=shift, first_partition=first_partition
    )


def _why_not(partitions: int, replication_factor: int, brokers: int, first_partition: int) -> Refusal | None:
    if partitions <= 0:
        why, error = "Number of partitions must be larger than 0.", ErrorCode.INVALID_PARTITIONS
    elif first_partition + partitions > PARTITIONS_MAX:
        why = f"Number of partitions must not be larger than {PARTITIONS_MAX}."
        error = ErrorCode.INVALID_PARTITIONS
    elif replication_factor <= 0:
        why, error = "Replication factor must be larger than 0.", ErrorCode.INVALID_REPLICATION_FACTOR
    elif replication_factor > brokers:
        why = f"Replication factor: {replication_factor} larger than available brokers: {brokers}."
        error = ErrorCode.INVALID_REPLICATION_FACTOR
    else:
        return None
    return Refusal(error, why)


def place_plainly(
    brokers: Sequence[BrokerId], partitions: int, replication_factor: int, *, first_partition: int = 0
) -> Iterator[PlacedRow]:
    """Partition i begins on broker i mod n, its replica j stands on broker (i + j) mod n."""
    count = len(brokers)
    for partition in range(first_partition, first_partition + partitions):
        yield (
            partition,
            tuple(brokers[(partition + replica) % count] for replica in range(replication_factor)),
        )


def place_shifted(
    brokers: Sequence[BrokerId],
    partitions: int,
    replication_factor: int,
    *,
    start: int = 0,
    shift: int = 0,
    first_partition: int = 0,
) -> Iterator[PlacedRow]:
    """Kafka's rule without racks: leaders go round, and followers shift by one more each full round."""
    count = len(brokers)
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        followers = [brokers[_follower(first, shift, j, count)] for j in range(replication_factor - 1)]
        yield partition, (brokers[first], *followers)


def place_across_racks(
    racks: Mapping[BrokerId, str],
    partitions: int,
    replication_factor: int,
    *,
    start: int = 0,
    shift: int = 0,
    first_partition: int = 0,
) -> Iterator[PlacedRow]:
    """Kafka's rule with racks: no rack holds a second replica while another holds none."""
    brokers = alternate_racks(racks)
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        yield partition, _spread(brokers, racks, first, shift, replication_factor)


def alternate_racks(racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """The brokers, one of each rack in turn: racks by name, brokers of a rack by id."""
    by_rack: dict[str, list[BrokerId]] = {rack: [] for rack in sorted(set(racks.values()))}
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    longest = max(len(brokers) for brokers in by_rack.values())
    return [brokers[turn] for turn in range(longest) for brokers in by_rack.values() if turn < len(brokers)]


def start_for_added_partitions(brokers: Sequence[BrokerId], first_replicas: Sequence[BrokerId]) -> int:
    """Where added partitions begin: at the first broker not below the first replica of partition 0."""
    return next((i for i, broker in enumerate(brokers) if broker >= first_replicas[0]), 0)


def _spread(
    brokers: Sequence[BrokerId],
    racks: Mapping[BrokerId, str],
    first: int,
    shift: int,
    replication_factor: int,
) -> tuple[BrokerId, ...]:
    count, rack_count = len(brokers), len(set(racks.values()))
    chosen = [brokers[first]]
    racks_used = {racks[brokers[first]]}
    step = 0
    while len(chosen) < replication_factor:
        broker = brokers[_follower(first, shift * rack_count, step, count)]
        step += 1
        rack_is_free = racks[broker] not in racks_used or len(racks_used) == rack_count
        if rack_is_free and broker not in chosen:
            chosen.append(broker)
            racks_used.add(racks[broker])
    return tuple(chosen)


def _follower(first: int, shift: int, replica: int, count: int) -> int:
    return (first + 1 + (shift + replica) % (count - 1)) % count
