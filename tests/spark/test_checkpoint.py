"""A checkpoint that cannot be written is refused before a query begins; every job has its page."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from ottla.spark.checkpoint import check_checkpoint
from ottla.spark.errors import OptionRefused
from ottla.spark.jobs import JOBS, archive


def test_a_checkpoint_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    options = archive.ArchiveOptions(bootstrap_servers="", topics="any", directory=str(file / "below"))

    with pytest.raises(OptionRefused, match=r"option checkpointLocation='.*': it cannot be made: Not a dir"):
        check_checkpoint("checkpointLocation", str(file / "below"))
    with pytest.raises(OptionRefused, match=r"option to=.*; choose a directory that you may write to"):
        archive.run(None, options, lambda _: None)  # type: ignore[arg-type]


def test_a_directory_is_made_and_one_elsewhere_is_left_to_spark(tmp_path: Path) -> None:
    check_checkpoint("checkpointLocation", (tmp_path / "new").as_uri())
    check_checkpoint("checkpointLocation", "s3a://bucket/elsewhere")

    assert (tmp_path / "new").is_dir()


def test_every_job_has_its_page(repository: Path) -> None:
    pages = {page.stem: page.read_text() for page in (repository / "docs/spark/jobs").glob("*.md")}

    assert set(pages) == set(JOBS)
    assert all(f"ottla pipeline run {name} " in text for name, text in pages.items())
