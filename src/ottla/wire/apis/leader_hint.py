"""The new leader that a broker names when it no longer leads (KIP-951), in Produce and in Fetch."""

from ottla.wire.fields import FrozenStruct, Struct, i32


class LeaderIdAndEpoch(FrozenStruct, frozen=True):
    leader_id: i32 = -1
    leader_epoch: i32 = -1


class NodeEndpoint(Struct):
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None
