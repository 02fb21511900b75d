"""Random txns and nodes, as a hypothesis may draw them."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.zookeeper.ops import Acl
from ottla.zookeeper.server.txns import (
    CheckTxn,
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    StoredNode,
    TxnHeader,
)

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
paths = texts.map(lambda name: f"/{name}x")
datas = st.none() | st.binary(max_size=40)
acls = st.lists(st.builds(Acl, ints, texts, texts), max_size=3).map(tuple)
parts = (
    st.builds(CreateTxn, paths, datas, acls, st.booleans(), ints)
    | st.builds(CreateContainerTxn, paths, datas, acls, ints)
    | st.builds(CreateTtlTxn, paths, datas, acls, ints, longs)
    | st.builds(DeleteTxn, paths)
    | st.builds(SetDataTxn, paths, datas, ints)
    | st.builds(SetAclTxn, paths, acls, ints)
    | st.builds(CheckTxn, paths, ints)
    | st.builds(ErrorTxn, ints)
)
txns = (
    parts
    | st.builds(MultiTxn, st.lists(parts, max_size=4).map(tuple))
    | st.builds(CreateSessionTxn, ints)
    | st.builds(CloseSessionTxn, st.lists(paths, max_size=3).map(tuple))
)
headers = st.builds(TxnHeader, longs, ints, longs, longs)
nodes = st.builds(StoredNode, paths, datas, acls, longs, longs, longs, longs, ints, ints, ints, longs, longs)
