"""An application asked without a socket: a request in, status, headers and body out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Answered:
    """What came back."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str:
        """The header's value; empty where there is none."""
        return next((value for key, value in self.headers if key == name), "")


async def asked(
    application: Any,
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    body: bytes = b"",
) -> Answered:
    """One request to its end."""
    plain, _, query = path.partition("?")
    answered = Answered()
    scope = {
        "type": "http",
        "method": method,
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8092),
        "client": ("127.0.0.1", 40_000),
        "root_path": "",
    }

    left = [body]

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.Event().wait()  # Whoever asked stays, and sends nothing more.
        body = left.pop()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answered.status = message["status"]
            answered.headers = [(k.decode().lower(), v.decode("latin-1")) for k, v in message["headers"]]
        else:
            answered.body += message.get("body", b"")

    await application(scope, receive, send)
    return answered
