"""The file ``leader-epoch-checkpoint`` of a partition: the leader epochs of its log, kept for a restart."""

from collections.abc import Iterable

from ottla.storage.disk.checkpoints import CorruptCheckpoint, decode_rows, encode_rows
from ottla.storage.disk.directory import PartitionHome
from ottla.storage.log.leader_epochs import EpochEntry, LeaderEpochs
from ottla.storage.segment.segment import Segment

LEADER_EPOCHS = "leader-epoch-checkpoint"


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """``epoch startOffset`` rows."""
    return encode_rows([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def decode_epochs(content: bytes) -> list[EpochEntry]:
    """Read a leader-epoch checkpoint; an empty file has no epochs."""
    rows = decode_rows(content, LEADER_EPOCHS)
    try:
        return [EpochEntry(int(epoch), int(start)) for epoch, start in rows]
    except ValueError as error:
        raise CorruptCheckpoint(f"{LEADER_EPOCHS}: {error}") from None


def load_epochs(
    home: PartitionHome, segments: Iterable[Segment], log_start_offset: int, end_offset: int
) -> LeaderEpochs:
    """The epochs of a log between two offsets: from the checkpoint, or from the batches if it is lost."""
    try:
        content = home.directory.disk.read_file(f"{home.path}/{LEADER_EPOCHS}")
        epochs = LeaderEpochs(decode_epochs(content))
    except (FileNotFoundError, CorruptCheckpoint):
        epochs = LeaderEpochs()
    if not len(epochs) and end_offset > log_start_offset:
        for segment in segments:
            epochs.learn(segment.scan(0))
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    return epochs
