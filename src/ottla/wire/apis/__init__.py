"""One module per API: the table of its request's and its response's fields, for all versions."""

from importlib import import_module

from ottla.wire.fields import Request, Response
from ottla.wire.keys import ApiKey


def message_classes(api_key: ApiKey) -> tuple[type[Request], type[Response]]:
    """The request and the response of an API; its module is imported at first use."""
    module = import_module(f"{__name__}.{api_key.name.lower()}")
    request: type[Request] = getattr(module, f"{api_key.spelling}Request")
    response: type[Response] = getattr(module, f"{api_key.spelling}Response")
    return request, response
