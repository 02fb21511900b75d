"""The client's side of a connection to a broker: numbered requests out, responses back in the same order.

It does no I/O and reads no clock. Its owner sends the parts that ``send`` returns, hands in each frame that
comes, and calls ``lose`` when the connection is gone. Deadlines are times of the owner's clock, in its unit.
"""

from collections import deque
from functools import cache
from typing import Any, Final, Generic, TypeVar

from ottla.model.errors import ErrorCode, MalformedRequest
from ottla.wire.apis import message_classes
from ottla.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.fields import Request, Response
from ottla.wire.headers import frame_request, response_body, response_correlation_id
from ottla.wire.keys import ApiKey
from ottla.wire.primitives import Buffer

W = TypeVar("W")
"""Whatever the owner wants back together with the response."""

SOFTWARE_NAME: Final = "ottla"
SOFTWARE_VERSION: Final = "0.1.0"
"""What we tell brokers about ourselves."""

HELLO_VERSION: Final = 3
"""ApiVersions is asked in this version first; an older broker answers in version 0."""

CORRELATION_ID_MAX: Final = 0x7FFF_FFFF
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class UnexpectedResponse(MalformedRequest):
    """A response that does not belong to the oldest request; nothing changed by it."""


class VersionsRefused(Exception):
    """The broker does not say which versions it serves: hang up."""


@cache
def response_class(api_key: int) -> type[Response]:
    """The class of an API's responses."""
    return message_classes(ApiKey(api_key))[1]


class Sent(Generic[W]):
    """A request that waits for its response."""

    __slots__ = ("correlation_id", "deadline", "response", "version", "waiter")

    def __init__(
        self, correlation_id: int, response: type[Response], version: int, waiter: W, deadline: int
    ) -> None:
        self.correlation_id = correlation_id
        self.response = response
        self.version = version
        self.waiter = waiter
        self.deadline = deadline


class ClientSide(Generic[W]):
    """One conversation with one broker, over any number of connections one after the other."""

    __slots__ = ("_hello_version", "_in_flight", "_next_correlation_id", "client_id", "versions")

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self.versions: dict[int, tuple[int, int]] | None = None
        """The lowest and the highest version of each API that the broker serves, once it has said so."""
        self._hello_version = HELLO_VERSION
        self._in_flight: deque[Sent[W]] = deque()
        self._next_correlation_id = 0

    def __len__(self) -> int:
        """How many requests wait for a response."""
        return len(self._in_flight)

    @property
    def oldest(self) -> Sent[W] | None:
        """The request whose response comes next: nobody behind it is answered before it."""
        return self._in_flight[0] if self._in_flight else None

    # Requests and responses

    def send(self, message: Request, version: int, waiter: W, deadline: int) -> list[Buffer]:
        """The frame to send; ``receive`` gives the waiter back with the response.

        A message that cannot be written in this version raises, and is not waited for.
        """
        number = self._next_correlation_id
        parts = frame_request(message, version, number, self.client_id)
        self._next_correlation_id = (number + 1) & CORRELATION_ID_MAX
        response = response_class(message.spec.api_key)
        self._in_flight.append(Sent(number, response, version, waiter, deadline))
        return parts

    def send_unanswered(self, message: Request, version: int) -> list[Buffer]:
        """The frame of a request that has no response (Produce with acks 0)."""
        number = self._next_correlation_id
        parts = frame_request(message, version, number, self.client_id)
        self._next_correlation_id = (number + 1) & CORRELATION_ID_MAX
        return parts

    def receive(self, frame: Buffer) -> tuple[W, Any]:
        """Who waits for this frame, and the response in it, which may hold views of the frame.

        Raises ``MalformedRequest`` when the peer broke the protocol; then hang up.
        """
        if not self._in_flight:
            raise UnexpectedResponse("a response that nobody asked for")
        sent = self._in_flight[0]
        number = response_correlation_id(frame)
        if number != sent.correlation_id:
            raise UnexpectedResponse(
                f"a response out of order: {number} came, {sent.correlation_id} was next"
            )
        version = sent.version
        if sent.response is ApiVersionsResponse and frame[4:6] == _UNSUPPORTED_VERSION:
            version = 0  # UNSUPPORTED_VERSION is said in the version that every client reads
        response = response_body(sent.response, version, frame)
        self._in_flight.popleft()
        return sent.waiter, response

    def lose(self) -> list[W]:
        """The connection is gone: everyone who waited, oldest first. The next one negotiates afresh."""
        self.versions = None
        self._hello_version = HELLO_VERSION
        sent, self._in_flight = self._in_flight, deque()
        return [each.waiter for each in sent]

    # Versions

    def greet(self, waiter: W, deadline: int) -> list[Buffer]:
        """The frame that asks which versions the broker serves; its response goes to ``greeted``."""
        hello = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        return self.send(hello, self._hello_version, waiter, deadline)

    def greeted(self, response: ApiVersionsResponse) -> bool:
        """Take the broker's versions; False when it must be asked again, in a lower version."""
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and self._hello_version > 0:
            known = {row.api_key: row.max_version for row in response.api_keys}
            self._hello_version = min(self._hello_version - 1, known.get(ApiKey.API_VERSIONS, 0))
            return False
        if response.error_code:
            raise VersionsRefused(f"refused ApiVersions: {response.error_code}")
        self.versions = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        return True

    def version_for(self, message: Request, version_max: int | None = None) -> int | None:
        """The highest version of this message that both sides speak, once that is known; None if none."""
        assert self.versions is not None, "versions are negotiated first"
        spec = message.spec
        assert spec.api_key is not None, "only messages of an API are sent"
        first, last = self.versions.get(spec.api_key, (0, -1))
        version = min(last, spec.versions[1] if version_max is None else version_max)
        return version if version >= max(first, spec.versions[0]) else None
