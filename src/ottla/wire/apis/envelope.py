"""Envelope: a request forwarded for somebody else."""

from typing import ClassVar

from ottla.wire.fields import Request, Response, Spec, i16
from ottla.wire.keys import ApiKey


class EnvelopeRequest(Request):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ENVELOPE)

    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""


class EnvelopeResponse(Response):
    spec: ClassVar[Spec] = Spec(versions=(0, 0), flexible=0, api_key=ApiKey.ENVELOPE)

    response_data: bytes | None = None
    error_code: i16 = 0
