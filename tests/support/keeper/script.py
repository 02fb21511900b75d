"""Random changes that a server might log: each is possible in the tree as it is."""

from __future__ import annotations

from random import Random

from ottla.zookeeper.ops import OPEN, READ_BY_ALL, Acl
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
    Txn,
    TxnHeader,
)
from support.keeper.reference_tree import ReferenceTree, parent_of

NO_NODE = -101
BAD_VERSION = -103
SESSION_BASE = 0x1000_0000_0000_0000
TTL_MS = 3_600_000


class Script:
    """Draws one change after another and applies it to its tree."""

    def __init__(self, tree: ReferenceTree, random: Random, zxid: int = 0) -> None:
        self.tree = tree
        self.zxid = zxid
        self._random = random
        self._sessions = 0
        self._names = 0

    def next(self) -> tuple[TxnHeader, Txn]:
        """The next change."""
        self.zxid += 1
        session = self._random.choice([*self.tree.sessions, SESSION_BASE])
        txn = self._draw(session)
        if isinstance(txn, CreateSessionTxn):
            self._sessions += 1
            session = SESSION_BASE + self.zxid
        header = TxnHeader(session, self.zxid & 0xFFFF, self.zxid, 1_795_000_000_000 + self.zxid)
        self.tree.apply(header, txn)
        return header, txn

    def _draw(self, session: int) -> Txn:
        chance = self._random.random()
        if chance < 0.06 or not self.tree.sessions:
            return CreateSessionTxn(self._random.choice((40_000, 50_000)))
        if chance < 0.10:
            return CloseSessionTxn(self.tree.owned(session))
        if chance < 0.14:
            return ErrorTxn(self._random.choice((NO_NODE, BAD_VERSION)))
        if chance < 0.30:
            return self._multi(session)
        return self._single(session)

    def _multi(self, session: int) -> MultiTxn:
        """Sets, checks and one change of the tree: what follows does not depend on what came before."""
        paths = self._random.sample(self._paths(), min(3, len(self._paths())))
        parts: list[Txn] = [self._set(path) for path in paths]
        parts += [CheckTxn(path, 0) for path in paths[:1]]
        parts.append(self._create(session))
        if self._random.random() < 0.2:
            parts.append(ErrorTxn(BAD_VERSION))
        return MultiTxn(tuple(parts))

    def _single(self, session: int) -> Txn:
        paths = self._paths()
        leaves = [path for path in paths if not self.tree.nodes[path].children]
        chance = self._random.random()
        if not paths or chance < 0.45:
            return self._create(session)
        if chance < 0.65 and leaves:
            return DeleteTxn(self._random.choice(leaves))
        path = self._random.choice(paths)
        if chance < 0.75:
            return SetAclTxn(path, self._acl(), self.tree.nodes[path].aversion + 1)
        return self._set(path)

    def _create(self, session: int) -> Txn:
        parents = [path for path in [*self._paths(), "/"] if not self._is_ephemeral(path)]
        parent = self._random.choice(parents)
        self._names += 1
        name = f"{self._random.choice(('n', 'ä', 's'))}{self._names:010d}"
        free = [each for each in ("a", "b", "c") if f"{parent.rstrip('/')}/{each}" not in self.tree.nodes]
        path = f"{parent.rstrip('/')}/{self._random.choice([*free, name])}"
        cversion = self.tree.nodes[parent_of(path)].cversion + 1
        data, acl = self._data(), self._acl()
        chance = self._random.random()
        if chance < 0.1:
            return CreateContainerTxn(path, data, acl, cversion)
        if chance < 0.2:
            return CreateTtlTxn(path, data, acl, cversion, TTL_MS)
        is_ephemeral = chance < 0.45 and session in self.tree.sessions
        return CreateTxn(path, data, acl, is_ephemeral, cversion)

    def _set(self, path: str) -> SetDataTxn:
        return SetDataTxn(path, self._data(), self.tree.nodes[path].version + 1)

    def _paths(self) -> list[str]:
        return [path for path in self.tree.nodes if path != "/" and not path.startswith("/zookeeper")]

    def _is_ephemeral(self, path: str) -> bool:
        return self.tree.nodes[path].ephemeral_owner >= SESSION_BASE

    def _data(self) -> bytes | None:
        return self._random.choice((None, b"", self._random.randbytes(self._random.randint(1, 60))))

    def _acl(self) -> tuple[Acl, ...]:
        mine = Acl(31, "digest", f"user{self._random.randint(0, 5)}:aGFzaA==")
        return self._random.choice((OPEN, OPEN, READ_BY_ALL, (mine,), (mine, *READ_BY_ALL)))
