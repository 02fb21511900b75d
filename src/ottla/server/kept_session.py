"""The last session of a broker that was killed: ended at once, instead of waited out.

A session outlives its process by its time-out, and so does the broker's registration. Its id and password
are kept beside the logs; whoever holds the lock of that directory knows that their owner is dead.
"""

import asyncio
import json
import logging
import os
from pathlib import Path

from ottla.zookeeper.connect_string import parse_connect_string
from ottla.zookeeper.jute import MalformedReply
from ottla.zookeeper.protocol import OpCode, frame_connect, frame_request, read_connect_reply

log = logging.getLogger(__name__)

SECONDS_MAX = 5.0
FRAME_BYTES_MAX = 4096
_TIMEOUT_MS = 4_000
_XID = 1


def keep_session(path: Path, session_id: int, password: bytes) -> None:
    """Note the session; readable by its owner alone, because whoever reads it can end the session."""
    text = json.dumps({"session": session_id, "password": password.hex()})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def read_kept_session(path: Path) -> tuple[int, bytes] | None:
    """Id and password, if the file tells them."""
    try:
        kept = json.loads(path.read_text())
        return int(kept["session"]), bytes.fromhex(kept["password"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def end_kept_session(path: Path, session_id: int, connect: str) -> None:
    """End the session if the file tells of this one; otherwise it will expire by itself."""
    kept = read_kept_session(path)
    if kept is None or kept[0] != session_id:
        return
    for host in parse_connect_string(connect).hosts:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await _end(host.name, host.port, *kept)
        except (OSError, UnicodeError, TimeoutError, asyncio.IncompleteReadError, MalformedReply) as error:
            log.info("the last session could not be ended server=%s reason=%s", host, error or "no answer")
            continue
        log.info("the last session of this broker is ended session=0x%x", session_id)
        return


async def _end(host: str, port: int, session_id: int, password: bytes) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(frame_connect(0, _TIMEOUT_MS, session_id, password))
        _, resumed, _, _ = read_connect_reply(await _read_frame(reader))
        if resumed == session_id:
            writer.write(frame_request(_XID, OpCode.CLOSE, b""))
            await _read_frame(reader)
    finally:
        writer.close()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > FRAME_BYTES_MAX:
        raise MalformedReply(f"a frame of {size} bytes")
    return await reader.readexactly(size)
