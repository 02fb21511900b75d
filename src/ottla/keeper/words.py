"""Four-letter words: what the keeper tells of itself to whoever asks without a session.

The texts are those of Apache's server, without what is not known here: latencies, and everything of Java's.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ottla.zookeeper.server.connection import Connection
from ottla.zookeeper.server.server import Server

VERSION: Final = "3.9.5-ottla"
"""The ZooKeeper that it was compared with, and that it is not that one."""
ALWAYS: Final = "srvr"
"""Apache's own scripts ask it, so its server answers it whatever is allowed."""


class Report:
    """Answers words; those that are not allowed with a sentence, as Apache's server does."""

    def __init__(
        self, server: Server, allowed: frozenset[str], settings: Mapping[str, object] | None = None
    ) -> None:
        """``settings`` are what ``conf`` shows."""
        self._server = server
        self._allowed = allowed
        self._settings = settings or {}
        self._answers: dict[str, Callable[[], str]] = {
            "ruok": lambda: "imok",
            "isro": lambda: "rw",
            "srvr": self._srvr,
            "stat": self._stat,
            "mntr": self._mntr,
            "conf": self._conf,
            "cons": self._cons,
            "dump": self._dump,
            "envi": lambda: f"Environment:\nzookeeper.version={VERSION}\n",
            "wchs": self._wchs,
            "wchc": self._wchc,
            "wchp": self._wchp,
        }

    def answer(self, word: str) -> str:
        """The text that a word is answered with."""
        answer = self._answers.get(word)
        if answer is None or not (word == ALWAYS or {"*", word} & self._allowed):
            return f"{word} is not executed because it is not in the whitelist.\n"
        return answer()

    def _srvr(self) -> str:
        return f"Zookeeper version: {VERSION}\n{self._counts()}"

    def _stat(self) -> str:
        clients = "".join(f" {_shown(each)}({_traffic(each)})\n" for each in self._server.connections)
        return f"Zookeeper version: {VERSION}\nClients:\n{clients}\n{self._counts()}"

    def _counts(self) -> str:
        server = self._server
        return (
            f"Received: {sum(each.received for each in server.connections)}\n"
            f"Sent: {sum(each.sent for each in server.connections)}\n"
            f"Connections: {len(server.connections)}\n"
            "Outstanding: 0\n"
            f"Zxid: 0x{server.tree.zxid:x}\n"
            "Mode: standalone\n"
            f"Node count: {len(server.tree.nodes) - 1}\n"
        )

    def _mntr(self) -> str:
        server = self._server
        tree = server.tree
        rows = {
            "version": VERSION,
            "server_state": "standalone",
            "ephemerals_count": sum(map(len, tree.ephemerals.values())),
            "num_alive_connections": len(server.connections),
            "outstanding_requests": 0,
            "znode_count": len(tree.nodes) - 1,
            "global_sessions": len(tree.sessions),
            "watch_count": len(server.watches),
            "approximate_data_size": sum(len(p) + len(node.data or b"") for p, node in tree.nodes.items()),
            "packets_received": sum(each.received for each in server.connections),
            "packets_sent": sum(each.sent for each in server.connections),
        }
        return "".join(f"zk_{name}\t{value}\n" for name, value in rows.items())

    def _conf(self) -> str:
        return "".join(f"{name}={value}\n" for name, value in self._settings.items())

    def _cons(self) -> str:
        rows = []
        for each in self._server.connections:
            session = f",sid=0x{each.session:x},to={each.timeout_ms}" if each.has_session else ""
            rows.append(f" {_shown(each)}({_traffic(each)}{session})\n")
        return "".join(rows) + "\n"

    def _dump(self) -> str:
        server = self._server
        rows = [f"SessionTracker dump:\nSessions ({len(server.tree.sessions)}):\n"]
        for due_ms, sessions in server.expiry.times().items():
            rows.append(f"{len(sessions)} expire in {max(0, due_ms - server.now_ms)} ms:\n")
            rows += [f"\t0x{session:x}\n" for session in sessions]
        owned = server.tree.ephemerals
        rows.append(f"ephemeral nodes dump:\nSessions with Ephemerals ({len(owned)}):\n")
        for session, paths in owned.items():
            rows.append(f"0x{session:x}:\n")
            rows += [f"\t{path}\n" for path in paths]
        return "".join(rows)

    def _watched(self) -> dict[str, dict[int, None]]:
        """The sessions that watch each path."""
        found: dict[str, dict[int, None]] = {}
        for table in (self._server.watches.data, self._server.watches.children):
            for path, watchers in table.by_path.items():
                found.setdefault(path, {}).update({each.session: None for each in watchers})
        return found

    def _wchs(self) -> str:
        watched = self._watched()
        connections = {session for sessions in watched.values() for session in sessions}
        return (
            f"{len(connections)} connections watching {len(watched)} paths\n"
            f"Total watches:{len(self._server.watches)}\n"
        )

    def _wchp(self) -> str:
        rows = [f"{path}\n" + _indented(sessions) for path, sessions in self._watched().items()]
        return "".join(rows) + "\n"

    def _wchc(self) -> str:
        paths_of: dict[int, list[str]] = {}
        for path, sessions in self._watched().items():
            for session in sessions:
                paths_of.setdefault(session, []).append(path)
        rows = [f"0x{session:x}\n\t" + "\n\t".join(paths) + "\n" for session, paths in paths_of.items()]
        return "".join(rows) + "\n"


def _indented(sessions: Mapping[int, None]) -> str:
    return "".join(f"\t0x{session:x}\n" for session in sessions)


def _shown(connection: Connection) -> str:
    return f"/{connection.address}:{connection.port}[{int(connection.has_session)}]"


def _traffic(connection: Connection) -> str:
    return f"queued={len(connection.out)},recved={connection.received},sent={connection.sent}"
