"""DeleteTopics: topics go, by name or by id."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, i16, i32, not_ignorable, nullable, since, until, uuid
from ottla.wire.primitives import ZERO_UUID


class DeleteTopicState(Struct):
    name: str | None = None
    topic_id: uuid = ZERO_UUID


class DeleteTopicsRequest(Request):
    topics: Annotated[list[DeleteTopicState], since(6), not_ignorable] = []
    topic_names: Annotated[tuple[str, ...], until(5)] = ()
    timeout_ms: i32 = 0


class DeletableTopicResult(Struct):
    name: Annotated[str | None, nullable(6)] = ""
    topic_id: Annotated[uuid, since(6)] = ZERO_UUID
    error_code: i16 = 0
    error_message: Annotated[str | None, since(5)] = None


class DeleteTopicsResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    responses: list[DeletableTopicResult] = []
