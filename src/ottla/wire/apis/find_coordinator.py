"""FindCoordinator: which broker coordinates a group or a transactional id."""

from typing import Annotated

from ottla.wire.fields import Request, Response, Struct, between, i8, i16, i32, not_ignorable, since, until


class FindCoordinatorRequest(Request):
    key: Annotated[str, until(3), not_ignorable] = ""
    key_type: Annotated[i8, since(1), not_ignorable] = 0
    coordinator_keys: Annotated[tuple[str, ...], since(4), not_ignorable] = ()


class Coordinator(Struct):
    key: str = ""
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""


class FindCoordinatorResponse(Response):
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: Annotated[i16, until(3)] = 0
    error_message: Annotated[str | None, between(1, 3)] = ""
    node_id: Annotated[i32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[i32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
