"""Settings written to ZooKeeper by the broker that was asked, and the note that tells the others."""

from collections.abc import Callable, Mapping

from ottla.broker.runtime.tasks import Pause, Steps, persistently
from ottla.broker.settings.resources import TOPIC, InvalidResource, broker_id_of
from ottla.model.errors import ErrorCode
from ottla.znodes import paths
from ottla.znodes.codec import MalformedZnode
from ottla.znodes.codec_config import ConfigNode, decode_config, encode_config, encode_config_change
from ottla.zookeeper.batches import is_lost_for_good
from ottla.zookeeper.ops import (
    Check,
    Create,
    Data,
    Failed,
    GetData,
    Lost,
    Multi,
    MultiDone,
    MultiFailed,
    SetData,
    ZkCode,
)

Change = Callable[[Mapping[str, str]], dict[str, str]]
"""From the overrides that are there to those that shall be; raises ``InvalidResource``."""


def entity_path(resource_type: int, name: str) -> str:
    """Where under ``/config`` a resource's overrides stand; an empty name is that of all brokers."""
    if resource_type == TOPIC:
        return f"topics/{name}"
    return f"brokers/{broker_id_of(name) if name else paths.DEFAULT_ENTITY}"


def write_overrides(entity: str, change: Change, validate_only: bool) -> Steps[InvalidResource | None]:
    """Read, change, write while there is a controller, tell the others. The refusal, if any.

    A change that somebody else makes meanwhile is read and kept: nobody's setting is lost.
    """
    path = f"{paths.CONFIG}/{entity}"
    lost = 0
    while True:
        found = yield from persistently(GetData(path))
        try:
            before = decode_config(found.data if isinstance(found, Data) else None)
            wanted = ConfigNode(change(before.config), before.other)
        except InvalidResource as invalid:
            return invalid
        except MalformedZnode as malformed:
            return InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed))
        if validate_only:
            return None
        encoded = encode_config(wanted)
        write = (
            SetData(path, encoded, found.stat.version) if isinstance(found, Data) else Create(path, encoded)
        )
        outcome = yield from _write(write)
        if isinstance(outcome, InvalidResource):
            return outcome
        if isinstance(outcome, MultiDone):
            yield from _leave_note(entity)
            return None
        if isinstance(outcome, MultiFailed) and outcome.code is ZkCode.NO_NODE and isinstance(write, Create):
            for parent in paths.parents(path):
                yield from persistently(Create(parent, b""))
            continue
        lost += isinstance(outcome, Lost)
        if is_lost_for_good(len(encoded), lost):
            why = f"ZooKeeper hangs up on a node of {len(encoded)} bytes: too much for its jute.maxbuffer."
            return InvalidResource(ErrorCode.INVALID_CONFIG, why)
        yield Pause(50)


def _write(write: SetData | Create) -> Steps[InvalidResource | MultiDone | Lost | MultiFailed]:
    """What is neither done nor refused is tried again, from what stands there then.

    The write holds only while the controller that was seen is the controller (KIP-866's guard).
    """
    controller = yield from persistently(GetData(paths.CONTROLLER))
    if not isinstance(controller, Data):
        return InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, "There is no controller.")
    guard = Check(paths.CONTROLLER, controller.stat.version)
    result: MultiDone | Lost | MultiFailed | Failed = yield Multi((guard, write))
    if isinstance(result, Failed) or (isinstance(result, MultiFailed) and not _may_try_again(result)):
        return InvalidResource(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper refused: {result}")
    return result


def _may_try_again(result: MultiFailed) -> bool:
    """The controller changed meanwhile, or somebody else made or changed the node."""
    return result.code in (ZkCode.BAD_VERSION, ZkCode.NO_NODE, ZkCode.NODE_EXISTS)


def _leave_note(entity: str) -> Steps[None]:
    yield from persistently(Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(entity), sequential=True))
