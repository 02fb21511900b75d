"""One module per API: the table of its request's and its response's fields, for all versions."""

from importlib import import_module

from ottla.wire.fields import Request, Response
from ottla.wire.keys import ApiKey


def message_classes(api_key: ApiKey) -> tuple[type[Request], type[Response]]:
    """The request and the response of an API; its module is imported at first use."""
    stem = api_key.name.lower()
    module = import_module(f"{__name__}.{stem}")
    name = "".join(word.capitalize() for word in stem.split("_"))
    request: type[Request] = getattr(module, f"{name}Request")
    response: type[Response] = getattr(module, f"{name}Response")
    return request, response
