"""The token that opens the console: in the first address, then in a cookie; and the one that forms carry."""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

HOST = "127.0.0.1"
"""Nothing else: who wants to look from another machine tunnels with ssh."""
TOKEN_BYTES = 24


@dataclass(frozen=True, slots=True)
class Token:
    """One secret for one console."""

    secret: str
    port: int

    @property
    def address(self) -> str:
        """What opens the console in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.secret}"

    @property
    def cookie_name(self) -> str:
        """Cookies know no ports: two consoles on one machine must not share theirs."""
        return f"ottla-console-{self.port}"

    def set_cookie(self) -> str:
        """The header's value: no script reads it, no other site sends it."""
        return f"{self.cookie_name}={self.secret}; Path=/; HttpOnly; SameSite=Strict"

    def is_told(self, text: str) -> bool:
        """Whether this is the secret; takes as long whatever the text is."""
        return hmac.compare_digest(text.encode(), self.secret.encode())

    def is_in_cookie(self, header: str) -> bool:
        """Whether the request's cookies hold it."""
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and self.is_told(found.value)

    def form_token(self) -> str:
        """What every form of ours carries, and no other site knows."""
        return hmac.new(self.secret.encode(), b"form", hashlib.sha256).hexdigest()

    def is_form_token(self, text: str) -> bool:
        """Whether a form is ours."""
        return hmac.compare_digest(text.encode(), self.form_token().encode())


def new_secret() -> str:
    """A secret that nobody guesses, and that fits into an address."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def kept_secret(file: Path | None) -> str:
    """The secret in a file, which is made for its owner alone where it is not there; or one for this run."""
    if file is None:
        return new_secret()
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text(encoding="ascii").strip() or new_secret()
    secret = new_secret()
    with os.fdopen(made, "w", encoding="ascii") as opened:
        opened.write(secret + "\n")
    return secret
