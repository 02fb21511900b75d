"""A page as HTML or as its JSON twin: both from the same struct."""

import functools
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ottla.insight.wording import duration_text, joined, size_text

HERE = Path(__file__).parent
_environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(joined=joined, size=size_text, duration=duration_text)
_environment.filters["number"] = lambda value: f"{value:,}"


@functools.cache
def static(name: str) -> str:
    """The address of a file of ours: another content has another address, so that browsers keep it."""
    content = (HERE / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


_environment.globals["static"] = static


def wants_json(request: Request) -> bool:
    """The address ends in ``.json``, or the caller accepts nothing else that we have."""
    accepted = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or (
        "application/json" in accepted and "text/html" not in accepted
    )


def answer(request: Request, template: str, page: Any, status: int = 200) -> Response:
    """The page as the caller wants it."""
    if wants_json(request):
        return Response(msgspec.json.encode(page), status, media_type="application/json")
    path = request.url.path
    text = _environment.get_template(template).render(
        page=page, frame=page.frame, here=path, twin=_twin(request), template=template
    )
    return HTMLResponse(text, status)


def refuse(request: Request, status: int, sentence: str, next_step: str) -> Response:
    """One sentence and a next step, in both forms."""
    if wants_json(request):
        body = msgspec.json.encode({"error": sentence, "next": next_step})
        return Response(body, status, media_type="application/json")
    text = _environment.get_template("refusal.html").render(
        status=status, sentence=sentence, next_step=next_step
    )
    return HTMLResponse(text, status)


def _twin(request: Request) -> str:
    """The address of the same as JSON."""
    path = request.url.path.rstrip("/") or "/index"
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")
