"""Large reads and writes in few requests, each within the limits of both sides."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.zookeeper.batches import (
    BATCH_REPLY_BYTES_MAX,
    BATCH_REQUEST_BYTES_MAX,
    STAT_BYTES,
    WRITES_MAX,
    halves,
    plan_fenced_writes,
    plan_reads,
)
from ottla.zookeeper.ops import Check, GetData, SetData
from ottla.zookeeper.protocol import encode_op

FEW = settings(max_examples=20, deadline=None)
FENCE = Check("/controller_epoch", 5)


@FEW
@given(st.integers(0, 3_000), st.integers(1, 50_000), st.integers(1, 200))
def test_planned_reads_keep_order_and_both_limits(count: int, data_bytes: int, path_size: int) -> None:
    reads = [GetData(f"/{number:0>{path_size}}") for number in range(count)]

    requests = plan_reads(reads, data_bytes=data_bytes)

    assert [op for request in requests for op in request.ops] == reads
    for request in requests:
        assert len(encode_op(request)) <= BATCH_REQUEST_BYTES_MAX + 100
        expected_reply = len(request.ops) * (data_bytes + STAT_BYTES)
        assert expected_reply <= BATCH_REPLY_BYTES_MAX or len(request.ops) == 1


@FEW
@given(st.lists(st.integers(0, 300_000), max_size=30))
def test_planned_writes_keep_order_begin_with_the_fence_and_stay_under_the_limit(sizes: list[int]) -> None:
    writes = [SetData(f"/é{number}", b"x" * size, number) for number, size in enumerate(sizes)]

    requests = plan_fenced_writes(FENCE, writes)

    assert [op for request in requests for op in request.ops[1:]] == writes
    assert all(request.ops[0] is FENCE for request in requests)
    assert all(len(encode_op(request)) <= BATCH_REQUEST_BYTES_MAX + 100 for request in requests)


def test_small_writes_are_bounded_in_number() -> None:
    requests = plan_fenced_writes(FENCE, [SetData("/a", b"", 0)] * (2 * WRITES_MAX + 1))

    assert [len(request.ops) for request in requests] == [WRITES_MAX + 1, WRITES_MAX + 1, 2]


def test_nothing_to_do_is_no_request() -> None:
    assert plan_reads([]) == []
    assert plan_fenced_writes(FENCE, []) == []


def test_a_read_whose_answer_is_too_large_is_cut_in_two() -> None:
    (request,) = plan_reads([GetData("/a"), GetData("/b"), GetData("/c")])

    first, second = halves(request)

    assert first.ops + second.ops == request.ops
    assert len(first.ops) == 1
