"""The session of a broker that was killed: the next start ends it at once, without waiting for its time-out.

A session outlives its process by its time-out, and so does the broker's registration. Its id and password
are kept beside the logs; whoever holds the lock of that directory knows that their owner is dead. That is for
deaths that take the guard along, such as a container's.
"""

import asyncio
import json
import logging
import os
from pathlib import Path

from ottla.server.guard.watcher import SessionUnknown, close_session
from ottla.zookeeper.connect_string import parse_connect_string

log = logging.getLogger(__name__)

_TIMEOUT_MS = 4_000


def keep_session(path: Path, session_id: int, password: bytes) -> None:
    """Note the session; readable by its owner alone, because whoever reads it can end the session."""
    text = json.dumps({"session": session_id, "password": password.hex()})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def read_kept_session(path: Path) -> tuple[int, bytes] | None:
    """Id and password, if the file holds them."""
    try:
        kept = json.loads(path.read_text())
        return int(kept["session"]), bytes.fromhex(kept["password"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def end_kept_session(path: Path, session_id: int, connect: str) -> None:
    """End this session if the file holds its password; otherwise it expires by itself."""
    kept = read_kept_session(path)
    if kept is None or kept[0] != session_id:
        return
    for host in parse_connect_string(connect).hosts:
        try:
            await asyncio.to_thread(close_session, host, *kept, _TIMEOUT_MS)
        except SessionUnknown:
            return
        except (OSError, UnicodeError) as error:
            log.info("the last session could not be ended server=%s reason=%s", host, error or "no answer")
            continue
        log.info("the last session of this broker is ended session=0x%x", session_id)
        return
