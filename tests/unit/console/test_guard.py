"""Who reaches the console: right host, right site, right token; nobody else sees a page."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from ottla.console.guard.middleware import Guard
from ottla.console.guard.token import Token, kept_secret
from support.client.asgi import Answered, asked

TOKEN = Token("s" * 32, 8092)
HOST = {"Host": "127.0.0.1:8092"}
COOKIE = {"Cookie": f"{TOKEN.cookie_name}={TOKEN.secret}"}
SAME_SITE = {"Origin": "http://127.0.0.1:8092", "Sec-Fetch-Site": "same-origin"}
FORM = {"X-CSRF-Token": TOKEN.form_token()}


async def page(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a page"})


def ask(path: str = "/", method: str = "GET", **headers: str) -> Answered:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(asked(Guard(page, TOKEN), path, named, method))


def test_who_has_the_cookie_sees_the_page_with_headers_that_keep_others_out() -> None:
    seen = ask(**HOST, **COOKIE)

    assert (seen.status, seen.body) == (200, b"a page")
    assert "default-src 'self'" in seen.header("content-security-policy")
    assert "frame-ancestors 'none'" in seen.header("content-security-policy")
    assert seen.header("x-content-type-options") == "nosniff"
    assert seen.header("referrer-policy") == "same-origin"


def test_the_first_address_gives_the_cookie_and_hides_its_token() -> None:
    opened = ask(f"/timeline?token={TOKEN.secret}&from=14%3A02", **HOST)

    assert (opened.status, opened.header("location")) == (303, "/timeline?from=14%3A02")
    assert opened.header("set-cookie").endswith("; Path=/; HttpOnly; SameSite=Strict")


def test_no_address_leads_to_another_host() -> None:
    opened = ask(f"//evil.example/?token={TOKEN.secret}", **HOST)

    assert opened.header("location").startswith("/evil.example")


def test_programs_give_the_token_as_bearer() -> None:
    assert ask(**HOST, Authorization=f"Bearer {TOKEN.secret}").status == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", HOST, 403),
        ("/?token=wrong", HOST, 403),
        ("/", {**HOST, "Authorization": "Bearer wrong"}, 403),
        ("/", {**HOST, "Cookie": f"{TOKEN.cookie_name}=wrong"}, 403),
        ("/", {**HOST, "Cookie": "\x00=;;"}, 403),
        ("/", {"Host": "evil.example:8092", **COOKIE}, 421),
        ("/", {"Host": "127.0.0.1:9999", **COOKIE}, 421),
        ("/", COOKIE, 421),
        ("/index.json", {**HOST, **COOKIE, "Sec-Fetch-Site": "cross-site"}, 403),
        ("/static/live.js", {**HOST, **COOKIE, "Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_all_others_are_refused(path: str, headers: dict[str, str], status: int) -> None:
    refused = asyncio.run(asked(Guard(page, TOKEN), path, headers))

    assert refused.status == status
    assert b"a page" not in refused.body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**SAME_SITE, **FORM}, 200),
        (FORM, 403),
        (SAME_SITE, 403),
        ({**SAME_SITE, "X-CSRF-Token": "wrong"}, 403),
        ({**SAME_SITE, **FORM, "Origin": "http://evil.example"}, 403),
        ({**SAME_SITE, **FORM, "Origin": "null"}, 403),
        ({**SAME_SITE, **FORM, "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_only_a_form_of_ours_may_act(headers: dict[str, str], status: int) -> None:
    done = asyncio.run(asked(Guard(page, TOKEN), "/", {**HOST, **COOKIE, **headers}, "POST"))

    assert done.status == status


@pytest.mark.parametrize(
    ("csrf", "status"), [(TOKEN.form_token(), 200), ("wrong", 403), ("", 403), ("x" * 4_000_000, 413)]
)
def test_a_form_without_script_carries_its_token_in_a_field(csrf: str, status: int) -> None:
    body = f"topic=a&csrf={csrf}".encode()
    headers = {**HOST, **COOKIE, **SAME_SITE}

    assert asyncio.run(asked(Guard(page, TOKEN), "/", headers, "POST", body)).status == status


def test_who_has_no_cookie_is_refused_before_the_form_is_read() -> None:
    body = f"csrf={TOKEN.form_token()}".encode()

    assert asyncio.run(asked(Guard(page, TOKEN), "/", {**HOST, **SAME_SITE}, "POST", body)).status == 403


def test_a_token_that_is_kept_stays_the_same_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"

    first, second = kept_secret(file), kept_secret(file)

    assert first == second != kept_secret(None)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
