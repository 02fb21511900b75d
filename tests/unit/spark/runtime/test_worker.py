"""Spark's Python worker is made ready once."""

import gc

from ottla.spark.runtime.worker import settle_worker


def test_what_was_imported_is_looked_at_no_more_by_the_collection_after_each_task() -> None:
    settle_worker.cache_clear()
    gc.unfreeze()
    try:
        settle_worker()
        frozen = gc.get_freeze_count()
        later: list[object] = [[number] for number in range(100)]
        settle_worker()

        assert frozen > 10_000
        assert gc.get_freeze_count() <= frozen, "only what stood there the first time"
        assert later
    finally:
        gc.unfreeze()
