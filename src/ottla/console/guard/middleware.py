"""Before any page: is the request for us, from a page of ours, and from somebody who has the token?

A console on loopback is reachable by every page that a browser shows: another site may send requests to it,
or have its own name resolved to 127.0.0.1.
"""

from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.console.guard.token import Token

SAFE_METHODS = frozenset({"GET", "HEAD"})
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
FORM_BYTES_MAX = 3_000_000
"""A record of 1 MB in a form may take three times as much."""

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not "no-referrer": with that, browsers hide the origin of our own forms from us.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NEVER_KEPT = (b"cache-control", b"no-store")
_KEPT = (b"cache-control", b"private, max-age=31536000, immutable")
"""Files of ours whose address names their content."""


class Guard:
    """Wraps the application; what it refuses never reaches a page."""

    def __init__(self, app: ASGIApp, token: Token) -> None:
        self._app = app
        self._token = token
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = frozenset(f"{name}:{token.port}" for name in names)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        if scope["method"] in SAFE_METHODS and (clean := self._without_token(scope)) is not None:
            cookie = [(b"set-cookie", self._token.set_cookie().encode())]
            await _answer(send, 303, "", [(b"location", clean.encode("latin-1")), *cookie])
            return
        if not self._is_known(headers):
            await _answer(
                send,
                403,
                "This console opens with the address that `ottla console` printed, token included.\n"
                "Copy it from there; `ottla status` shows it for a cluster of `ottla up --console`.\n",
            )
            return
        if scope["method"] not in SAFE_METHODS:
            body = await _body(receive)
            if body is None:
                await _answer(send, 413, f"A form has at most {FORM_BYTES_MAX} bytes.\n")
                return
            if not self._token.is_form_token(headers.get(CSRF_HEADER) or _field(body, CSRF_FIELD)):
                await _answer(send, 403, "The form is not one of this console; load the page again.\n")
                return
            receive = _again(body, receive)
        is_kept = scope["path"].startswith("/static/") and scope["query_string"].startswith(b"v=")
        await self._app(scope, receive, _with_headers(send, _KEPT if is_kept else _NEVER_KEPT))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """What no token helps against."""
        host = headers.get("host", "")
        if host not in self._hosts:
            return 421, f"This console answers to 127.0.0.1:{self._token.port}, not to this name.\n"
        site = headers.get("sec-fetch-site", "same-origin")
        if scope["method"] in SAFE_METHODS:
            if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
                return 403, "Another site may not read this console.\n"
            return None
        # Browsers name the origin of every request that changes something.
        if headers.get("origin") not in self._origins or site != "same-origin":
            return 403, "Another site may not act through this console.\n"
        return None

    def _without_token(self, scope: Scope) -> str | None:
        """The same address without its token, if it has the right one."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        told = [value for name, value in pairs if name == "token"]
        if not told or not self._token.is_told(told[0]):
            return None
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").split("?")[0]
        path = "/" + path.lstrip("/\\")  # Two slashes would name another host.
        return f"{path}?{rest}" if rest else path

    def _is_known(self, headers: dict[str, str]) -> bool:
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._token.is_told(secret.strip())
        return self._token.is_in_cookie(headers.get("cookie", ""))


async def _body(receive: Receive) -> bytes | None:
    """All of a form; ``None`` where it is larger than any of ours."""
    parts, size = [], 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > FORM_BYTES_MAX:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _field(body: bytes, name: str) -> str:
    """One field of a form that was not read yet."""
    mark = f"{name}=".encode()
    found = next((part for part in body.split(b"&") if part.startswith(mark)), b"")
    return found[len(mark) :].decode("latin-1")


def _again(body: bytes, then: Receive) -> Receive:
    """For the page, which reads the form as if nobody had."""
    left = [body]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await then()

    return receive


def _with_headers(send: Send, keeping: tuple[bytes, bytes]) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            is_there = message["status"] == 200
            more = [*_HEADERS, keeping if is_there else _NEVER_KEPT]
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return guarded


async def _answer(
    send: Send, status: int, text: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """A short text; every answer of the guard has the same headers as the pages."""
    body = text.encode()
    start = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    all_headers = [*start, *(headers or ()), *_HEADERS, _NEVER_KEPT]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})
